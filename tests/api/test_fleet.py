"""Workers and queues over HTTP."""

from api.calling import Caller
from foliot.domain.ids import encode
from world import World


async def test_workers_are_listed_and_drained(api: Caller, world: World):
    hand = await world.worker("noop", "other")
    (listed,) = (await api.get("/v1/workers?state=live")).json["items"]
    assert listed["workerId"] == encode("wrk", hand.id)
    assert listed["handlers"] == ["fn:noop", "fn:other"]
    assert listed["queues"] == ["default"]
    drained = await api.post(f"/v1/workers/{listed['workerId']}:drain")
    assert (drained.status, drained.json["state"]) == (200, "draining")
    assert (await api.get("/v1/workers?state=live")).json["items"] == []
    await hand.die()
    assert (await api.post(f"/v1/workers/{listed['workerId']}:drain")).status == 409
    for unknown in ("wrk_0000000000009", "nonsense"):
        assert (await api.post(f"/v1/workers/{unknown}:drain")).status == 404
    assert (await api.get("/v1/workers?state=asleep")).field == "state"
    assert (await api.get("/v1/workers?cursor=x")).status == 400


async def test_queues_are_listed_paused_and_resumed(api: Caller):
    run = await api.submit()
    (queue,) = (await api.get("/v1/queues")).json["items"]
    assert (queue["name"], queue["ready"], queue["unserved"]) == ("default", 1, ["fn:noop"])
    seen = (await api.get(f"/v1/runs/{run}")).json
    assert (seen["status"], seen["state"]) == ("pending", "blocked")
    assert seen["waitingFor"] == "a worker: none that lives offers 'fn:noop' on queue 'default'"
    paused = (await api.post("/v1/queues/default:pause")).json
    assert paused["pausedAt"] < paused["holdsBy"]
    assert (await api.get(f"/v1/runs/{run}")).json["waitingFor"] == "queue 'default' to be resumed"
    assert [each["runId"] for each in (await api.get("/v1/runs?state=blocked")).json["items"]] == [run]
    assert (await api.post("/v1/queues/default:resume")).json["pausedAt"] is None
    for unknown in ("nowhere", "%00", "a%2Fb", "%20"):
        assert (await api.post(f"/v1/queues/{unknown}:pause")).status == 404


async def test_the_fleet_is_in_the_metrics(api: Caller, world: World):
    await world.worker("other")
    await api.submit()
    await api.post("/v1/queues/default:pause")
    told = (await api.get("/metrics")).content.decode()
    for line in ('foliot_workers{state="live"} 1.0', "foliot_lanes_without_worker 1.0", "foliot_queues_paused 1.0"):
        assert line in told
