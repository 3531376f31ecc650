"""Limits and overlap through the API: told back, checked against payloads, and who waits for whom."""

from typing import Any

import pytest

from api.calling import PLAIN, Caller, rows
from foliot.domain.ids import decode
from foliot.domain.job import Overlap
from foliot.services import submit
from world import World

BY_ACCOUNT = {"limit": 2, "key": "payload.account"}


async def test_a_limit_and_an_overlap_are_told_back_changed_and_taken_away(api: Caller):
    made = await api.create(every=3600, payload={"account": 7}, concurrency=BY_ACCOUNT, overlap="queueOne")
    address = f"/v1/jobs/{made['jobId']}"
    assert (made["concurrency"], made["overlap"], made["version"]) == (BY_ACCOUNT, "queueOne", 1)
    changed = (await api("PATCH", address, {"concurrency": {"limit": 1}, "overlap": "allow"})).json
    assert (changed["concurrency"], changed["overlap"], changed["version"]) == ({"limit": 1}, "allow", 2)
    freed = (await api("PATCH", address, {"concurrency": None, "overlap": None})).json
    assert ("concurrency" in freed, freed["overlap"], freed["version"]) == (False, "skip", 3)
    assert (await api.get(address)).json == freed


@pytest.mark.parametrize("word", list(Overlap))
async def test_every_overlap_is_kept(api: Caller, word: str):
    made = await api.create(every=3600, overlap=word)
    assert made["overlap"] == word
    assert (await api("PATCH", f"/v1/jobs/{made['jobId']}", {"name": "other"})).json["overlap"] == word


async def test_a_batch_has_limits_of_its_own(api: Caller):
    jobs = [{**PLAIN, "payload": {"account": n}, "concurrency": BY_ACCOUNT} for n in range(2)]
    ids = (await api.post("/v1/jobs:batch", {"jobs": jobs})).json["jobIds"]
    assert [(await api.get(f"/v1/jobs/{each}")).json["concurrency"] for each in ids] == [BY_ACCOUNT] * 2


async def test_a_payload_that_lacks_the_key_is_refused_wherever_it_comes_from(api: Caller, world: World):
    made = await api.create(every=3600, payload={"account": 7}, concurrency=BY_ACCOUNT)
    address = f"/v1/jobs/{made['jobId']}"
    before = await rows(world)
    assert (await api("PATCH", address, {"payload": {"user": 7}})).field == "payload"
    assert (await api("PATCH", address, {"payload": None})).field == "payload"
    assert (await api("PATCH", address, {"concurrency": {"limit": 2, "key": "payload.user"}})).field == "payload"
    for payload in ({"user": 7}, None, [], "account"):
        assert (await api.post(f"{address}:run", {"payload": payload})).field == "payload"
    assert await rows(world) == before
    assert (await api.get(address)).json == made


async def test_a_job_that_nobody_but_people_run_needs_no_payload_of_its_own(api: Caller, world: World):
    made = await api.create(concurrency=BY_ACCOUNT)
    address = f"/v1/jobs/{made['jobId']}"
    assert (await api.post(f"{address}:run")).field == "payload"
    assert (await api.post(f"{address}:run", {"payload": {"account": 7}})).status == 201
    assert (await api("PATCH", address, {"every": 3600})).field == "payload"
    assert (await api("PATCH", address, {"scheduleAt": "2030-01-01T00:00:00Z"})).field == "payload"


async def test_equal_values_count_together_whatever_carries_them(api: Caller, world: World):
    """By hand, by the job itself and with fields in another order; runs without a job are a world of their own."""
    where: dict[str, Any] = {"city": "Ulm", "zip": "89073"}
    key = {"limit": 2, "key": "payload.where"}
    made = await api.create(scheduleAt="2030-01-01T00:00:00Z", payload={"where": where}, concurrency=key)
    turned = {"n": 1, "where": dict(reversed(where.items()))}
    await api.post(f"/v1/jobs/{made['jobId']}:run", {"payload": turned})
    await api.submit(payload={"where": where}, concurrency=key)
    await api.submit(payload={"where": where["city"]}, concurrency=key)
    keys = await world.sql("SELECT limit_key FROM run WHERE id > 0 UNION ALL SELECT limit_key FROM timer WHERE id > 0")
    found = [row["limit_key"] for row in keys]
    assert len(found) == 4
    assert len(set(found)) == 2
    assert await world.value("SELECT limit_key FROM job") in found


async def test_what_cannot_be_let_in_was_never_there(api: Caller, world: World, monkeypatch: pytest.MonkeyPatch):
    async def fail(*_: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(submit, "enter", fail)
    assert (await api.post("/v1/runs", {"handler": "noop", "concurrency": {"limit": 1}})).status == 500
    assert await world.count("run") == 0


async def test_who_waits_says_for_whom_and_who_comes_first(api: Caller, world: World):
    limit = {"concurrency": {"limit": 2}}
    first, second, third, fourth = [await api.submit(**limit) for _ in range(4)]
    hand = await world.worker()
    assert {run.id for run in await hand.claim()} == {decode("run", first), decode("run", second)}
    shown = {run: (await api.get(f"/v1/runs/{run}")).json for run in (first, third, fourth)}
    assert "blockedBy" not in shown[first]
    assert (shown[third]["state"], shown[third]["status"]) == ("blocked", "pending")
    assert shown[third]["concurrency"] == {"limit": 2}
    assert shown[third]["blockedBy"] == {"line": "concurrency", "limit": 2, "going": 2, "ahead": 0}
    assert shown[fourth]["blockedBy"] == {"line": "concurrency", "limit": 2, "going": 2, "ahead": 1}
    assert shown[third]["waitingFor"] == "its turn: at most 2 runs of its queue and handler at once; it is the next"
    assert shown[fourth]["waitingFor"].endswith("; 1 before it")
    listed = {each["runId"]: each for each in (await api.get("/v1/runs?state=blocked")).json["items"]}
    assert listed.keys() == {third, fourth}
    assert listed[fourth]["blockedBy"] == {"line": "concurrency", "limit": 2}


async def test_a_job_whose_runs_wait_for_their_turn_is_blocked_until_one_of_them_goes(api: Caller, world: World):
    hand = await world.worker()
    job = await api.create(payload={"account": 7}, concurrency={"limit": 1, "key": "payload.account"})
    address = f"/v1/jobs/{job['jobId']}"
    for _ in range(2):
        await api.post(f"{address}:run")
    assert (await api.get(address)).json["status"] == "blocked"
    (waiting,) = (await api.get("/v1/runs?state=blocked")).json["items"]
    assert waiting["waitingFor"] == "its turn: at most 1 run of its job with its payload.account at once"
    await hand.claim()
    assert (await api.get(address)).json["status"] == "running"


async def test_a_changed_limit_counts_for_those_who_wait_already(api: Caller, world: World):
    hand = await world.worker()
    job = await api.create(concurrency={"limit": 1})
    address = f"/v1/jobs/{job['jobId']}"
    runs = [(await api.post(f"{address}:run")).json["runId"] for _ in range(5)]
    assert [run.id for run in await hand.claim()] == [decode("run", runs[0])]
    await api("PATCH", address, {"concurrency": {"limit": 3}})
    await world.promoter.run_once()
    assert [run.id for run in await hand.claim()] == [decode("run", each) for each in runs[1:3]]
    await api("PATCH", address, {"concurrency": None})
    await world.promoter.run_once()
    assert len(await hand.claim()) == 2


async def test_a_tenant_reads_and_sets_its_own_limit(api: Caller, world: World):
    plain = (await api.get("/v1/tenants/acme")).json
    assert (plain["tenant"], plain["weight"], plain["going"], plain["waiting"]) == ("acme", 1, None, None)
    assert plain["limits"] == {"concurrency": None, "rateLimit": None, "backlog": None}
    limited = (await api("PATCH", "/v1/tenants/acme", {"limits": {"concurrency": 1}})).json
    held = {"limits": {**plain["limits"], "concurrency": 1}, "going": 0, "waiting": 0, "version": plain["version"] + 1}
    assert limited == {**plain, **held}
    assert (await api("PATCH", "/v1/tenants/acme", {"limits": {}})).json == limited
    assert (await api("PATCH", "/v1/tenants/acme", {"limits": {"concurrency": None}})).json == {
        **plain,
        "version": plain["version"] + 2,
    }


async def test_a_raised_limit_lets_those_go_that_wait_for_it(api: Caller, world: World):
    await api("PATCH", "/v1/tenants/acme", {"limits": {"concurrency": 1}})
    runs = [await api.submit() for _ in range(4)]
    hand = await world.worker()
    assert len(await hand.claim()) == 1
    blocked = (await api.get(f"/v1/runs/{runs[2]}")).json
    assert blocked["blockedBy"] == {"line": "tenant", "limit": 1, "going": 1, "ahead": 1}
    await api("PATCH", "/v1/tenants/acme", {"limits": {"concurrency": 3}})
    await world.promoter.run_once()
    raised = (await api.get("/v1/tenants/acme")).json
    assert (raised["going"], raised["waiting"]) == (3, 1)
    assert len(await hand.claim()) == 2
    freed = (await api("PATCH", "/v1/tenants/acme", {"limits": {"concurrency": None}})).json
    assert freed["limits"]["concurrency"] is None
    await world.promoter.run_once()
    assert len(await hand.claim()) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"limits": {"concurrency": 0}}, "limits.concurrency"),
        ({"limits": {"concurrency": -3}}, "limits.concurrency"),
        ({"limits": {"concurrency": 1_000_001}}, "limits.concurrency"),
        ({"limits": {"concurrency": "many"}}, "limits.concurrency"),
        ({"limits": {"runs": 1}}, "limits.runs"),
        ({"limits": None}, "limits"),
        ({"weight": 0}, "weight"),
        ({"share": 3}, "share"),
    ],
)
async def test_a_limit_that_cannot_be_changes_nothing(api: Caller, body: Any, field: str):
    await api("PATCH", "/v1/tenants/acme", {"limits": {"concurrency": 5}})
    assert (await api("PATCH", "/v1/tenants/acme", body)).field == field
    assert (await api.get("/v1/tenants/acme")).json["limits"]["concurrency"] == 5
