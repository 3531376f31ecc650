"""Work over HTTP: who may fetch it, what is refused, and that nobody who hangs up keeps any."""

import asyncio
import json
from typing import Any

import pytest

from api.calling import Caller, application, ask
from foliot.domain.ids import encode
from foliot.kit.signals import READY
from foliot.services.tenants import REMEMBERED, Tenants
from services.remotes import waiting
from world import PATIENCE, World

WORKER = encode("wrk", 5)
REGISTER = {"name": "w", "queues": ["default"], "groups": ["fn:noop"]}


async def register(api: Caller, worker: str = WORKER, **more: Any) -> list[int]:
    answer = await api.post("/v1/work/heartbeat", {"worker": worker, "register": {**REGISTER, **more}})
    assert answer.status == 200, answer.content
    assert answer.json["alive"]
    return [told["lane"] for told in answer.json["lanes"]]


async def claim(api: Caller, lanes: list[int], **more: Any) -> Any:
    return await api.post(
        "/v1/work/claim", {"worker": WORKER, "number": 1, "lanes": lanes, "most": 5, "wait": 0, **more}
    )


async def test_a_run_goes_out_and_comes_back(api: Caller, world: World):
    run = await api.submit(payload={"n": 1}, handler="http://127.0.0.1/hook")
    lanes = await register(api, groups=["http"])
    taken = (await claim(api, lanes, wait=5)).json
    assert taken["runs"]["runId"] == [run]
    assert taken["runs"]["payload"] == [{"n": 1}]
    assert taken["runs"]["target"] == [{"url": "http://127.0.0.1/hook"}]
    assert [each["spec"] for each in taken["specs"]] == taken["runs"]["spec"]
    fence = taken["runs"]["fence"][0]
    done = {"fence": fence, "runId": [run], "position": [1], "startedAt": ["2026-11-16T05:00:00Z"]}
    settled = await api.post("/v1/work/settle", {"worker": WORKER, "succeeded": [done], "forget": [fence]})
    assert settled.json == {"lost": [], "uncovered": []}
    assert (await api.get(f"/v1/runs/{run}")).json["status"] == "completed"


async def test_a_key_that_serves_nothing_is_told_what_to_do(api: Caller, stranger: Caller):
    lanes = await register(api)
    refused = await stranger.post("/v1/work/heartbeat", {"worker": encode("wrk", 6), "register": REGISTER})
    assert refused.status == 403
    assert "scope work" in refused.json["detail"]
    assert "--serve" in refused.json["hint"]
    assert (await claim(stranger, lanes)).status == 403


async def test_a_key_sees_how_its_own_processes_are_doing_and_nobody_elses(api: Caller, world: World):
    other = Caller(api.app, await Tenants(world.database).issue_key("acme", "laptop", ["*"]))
    lanes = await register(api, host="oslo", pid=7)
    await api.post("/v1/work/heartbeat", {"worker": WORKER, "load": {"running": [2 for _ in lanes], "rate": [0.0]}})
    await register(api, encode("wrk", 6), host="oslo", pid=8)
    await world.submit(3)

    async def look(caller: Caller, *pids: int, host: str = "oslo") -> tuple[int, int]:
        answer = await caller.post("/v1/work/look", {"host": host, "pids": pids})
        assert answer.status == 200, answer.content
        return answer.json["busy"], answer.json["backlog"]

    assert await look(api, 7, 8) == (1, 3)
    assert await look(api, 8) == (0, 3)
    assert await look(api, 7, 8, host="bergen") == (0, 0)
    assert await look(other, 7, 8) == (0, 0)


@pytest.mark.parametrize("ends", [True, False])
async def test_a_worker_that_waits_gets_nothing_once_its_key_is_believed_no_more(world: World, *, ends: bool):
    now = [0.0]
    api = Caller(application(world, Tenants(world.database, lambda: now[0])), world.key)
    lanes = await register(api)
    poll = asyncio.ensure_future(claim(api, lanes, wait=20))
    await waiting(world, 1)
    if ends:
        await world.sql("UPDATE api_key SET revoked_at = clock_timestamp()")
    now[0] = REMEMBERED + 0.1
    await world.submit()
    world.gateway.wake()
    answer = await asyncio.wait_for(poll, PATIENCE)
    if not ends:
        assert (answer.status, len(answer.json["runs"]["runId"])) == (200, 1)
        return
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert (await world.count("claim"), await world.count("ready")) == (0, 1)
    assert READY in world.hints
    assert await world.value("SELECT max(deaths) + max(attempt) FROM run WHERE id > 0") == 0, "nobody has had it"


async def test_a_key_of_the_same_tenant_that_serves_another_queue_is_refused_too(api: Caller, world: World):
    mail = Caller(api.app, await Tenants(world.database).issue_key("acme", "mail", ["mail"]))
    assert (await mail.post("/v1/work/heartbeat", {"worker": WORKER, "register": REGISTER})).status == 403
    assert await register(mail, queues=["mail"])
    assert (await claim(mail, await register(api, encode("wrk", 6)))).status == 403


async def test_another_keys_worker_is_answered_byte_for_byte_like_one_that_never_was(api: Caller, world: World):
    await register(api)
    other = Caller(api.app, await Tenants(world.database).issue_key("acme", "other", ["*"]))
    for path in ("claim", "heartbeat", "settle"):
        foreign = await other.post(f"/v1/work/{path}", {"worker": WORKER})
        unknown = await other.post(f"/v1/work/{path}", {"worker": encode("wrk", 999)})
        nonsense = await other.post(f"/v1/work/{path}", {"worker": "nonsense"})
        assert foreign.status == 404
        assert foreign.content == unknown.content == nonsense.content


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("claim", {"lanes": [999_999], "most": 1}),
        ("claim", {"most": 801}),
        ("claim", {"wait": 26}),
        ("heartbeat", {"started": {"runId": [], "fence": [1], "startedAt": []}}),
        ("heartbeat", {"started": {"runId": ["x"], "fence": [1], "startedAt": ["2026-01-01T00:00:00Z"]}}),
        ("heartbeat", {"register": {**REGISTER, "queues": []}}),
        ("settle", {"succeeded": [{"fence": 1, "runId": ["run_0"], "position": [], "startedAt": []}]}),
        (
            "settle",
            {
                "succeeded": [
                    {
                        "fence": 1,
                        "runId": [encode("run", 1)],
                        "position": [1],
                        "startedAt": ["0001-01-01T00:00:00+23:59"],
                    }
                ]
            },
        ),
    ],
)
async def test_what_makes_no_sense_is_refused(api: Caller, path: str, body: Any):
    await register(api)
    answer = await api.post(f"/v1/work/{path}", {"worker": WORKER, **body})
    assert answer.field


@pytest.mark.parametrize(
    "outcome",
    [
        {"ending": 2, "event": "replayed"},
        {"ending": 5, "event": "lapsed"},
        {"ending": 2, "event": "retried", "delay": "P4000D"},
        {"ending": 99, "event": "died"},
    ],
)
async def test_a_worker_says_of_an_attempt_only_what_workers_can_know(api: Caller, outcome: Any):
    await register(api)
    ended = {
        "runId": encode("run", 1),
        "fence": 1,
        "position": 1,
        "tenant": 1,
        "attempt": 0,
        "scheduledAt": "2026-01-01T00:00:00Z",
        "startedAt": None,
        "outcome": outcome,
    }
    assert (await api.post("/v1/work/settle", {"worker": WORKER, "ended": [ended]})).field


async def test_who_hangs_up_while_the_claim_is_under_way_keeps_nothing(api: Caller, world: World):
    lanes, hung_up = await register(api), asyncio.Event()
    await api.submit()
    body = json.dumps({"worker": WORKER, "number": 1, "lanes": lanes, "most": 5, "wait": 20}).encode()
    headers = {"authorization": f"Bearer {api.key}"}
    async with world.unfinished() as rival:
        await rival.execute("LOCK TABLE claim IN ACCESS EXCLUSIVE MODE")
        asking = asyncio.ensure_future(ask(api.app, "POST", "/v1/work/claim", body, headers, hung_up))
        await world.until_waiting()
        hung_up.set()
    await asyncio.wait_for(asking, PATIENCE)
    assert await world.count("claim") == 0
    assert await world.count("ready") == 1
