"""The audit trail through the API: every change and every denied attempt, for the tenant whose they are."""

from ipaddress import ip_network
from typing import Any

import asyncpg
import pytest

from api.calling import PLAIN, Answer, Caller, application
from api.test_table import BODIES, CALENDAR, WITH_ID, address, number, owned  # noqa: F401 - a fixture
from foliot.api.app import OPERATIONS
from foliot.domain.ids import encode
from foliot.services.seal import Sealer
from foliot.store.database import ACTING_FOR
from world import World

CHANGES = [each for each in OPERATIONS if each.is_change]
ICS = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:20261225\nSUMMARY:x\nEND:VEVENT\nEND:VCALENDAR"
LAST = {"cancelJob", "deleteJob", "revokeKey", "deleteCalendar", "cancelOperation"}
BODIES_OF_CHANGES: dict[str, Any] = {
    **BODIES,
    "putCalendar": {"timezone": "Asia/Tokyo"},
    "importCalendar": {"ics": ICS},
}


async def entries(api: Caller, query: str = "") -> list[dict[str, Any]]:
    return (await api.get(f"/v1/audit{query}")).json["items"]  # type: ignore[no-any-return]


def test_handing_in_work_is_no_change_and_neither_is_doing_it():
    quiet = {each.name for each in OPERATIONS if each.method != "GET" and not each.is_change}
    assert quiet == {
        "createRun",
        "createRuns",
        "heartbeat",
        "claimWork",
        "settleWork",
        "reportWork",
        "lookAtProcesses",
        "readSecrets",
        "completeRun",
    }


async def test_every_change_is_noted_with_the_change(
    guarded: Caller,
    owned: dict[str, int],  # noqa: F811 - the fixture
    subtests: pytest.Subtests,
):
    bodies = {
        **BODIES_OF_CHANGES,
        "discardDeadLetters": {"filter": {}},
        "replayDeadLetters": {"runIds": [encode("run", owned["dead"])]},
    }
    # What must be so for the change to be one: open before it is paused, paused before it is resumed.
    order = sorted(CHANGES, key=lambda each: (each.name in LAST, "resume" in each.name, "pause" in each.name))
    for operation in order:
        if operation.name in {"retryRun", "deleteJob"}:
            continue  # replaying and cancelling do the same, once
        with subtests.test(operation.name):
            where = address(operation, number(operation, owned) if operation in WITH_ID else 0)
            answer = await guarded(operation.method, where, bodies.get(operation.name), x_request_id=operation.name)
            assert answer.status < 300, answer.content
            assert answer.headers["x-request-id"] == operation.name
            whose = "&tenant=new" if operation.name == "createTenant" else ""
            (entry,) = await entries(guarded, f"?request={operation.name}{whose}")
            assert (entry["actor"], entry["ip"], entry["action"]) == ("acme", "127.0.0.1", operation.name)
            assert entry["keyId"] == "key_" + guarded.key.split("_")[1]
            assert entry["outcome"] == "done"
            assert entry["subject"]
            assert entry["before"] != entry["after"]


async def test_the_role_that_answers_requests_only_adds_to_the_trail(world: World, guarded: Caller):
    await guarded.create()
    await Sealer(world.database).run_once()
    await guarded.create()
    own = await world.database.guarded(size=1)
    assert own is not None
    ACTING_FOR.set(world.tenant)
    for statement in (
        "UPDATE audit SET position = 2, hash = sha256('') WHERE tenant = $1 AND position IS NULL",
        "DELETE FROM audit WHERE tenant = $1",
        "INSERT INTO audit (tenant, actor, action, outcome, position, hash) VALUES ($1, '', '', 'done', 2, sha256(''))",
        "UPDATE audit_chain SET position = 0 WHERE tenant = $1",
        "INSERT INTO audit_checkpoint (number, body) VALUES ($1, '')",
    ):
        async with own.connection() as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement, world.tenant)
    await own.close()


async def test_before_and_after_are_told_and_secrets_are_not(api: Caller):
    handler = {"type": "http", "url": "https://example.com/", "headers": {"Authorization": "Bearer s3cret"}}
    job = (await api.create(handler=handler, payload={"card": "4111"}))["jobId"]
    changed = await api("PATCH", f"/v1/jobs/{job}", {"name": "other", "payload": {"card": "4222"}})
    assert changed.status == 200
    change, made = await entries(api, f"?subject={job}")
    assert (made["action"], made["before"]) == ("createJob", None)
    assert change["before"]["name"] == "report"
    assert change["after"]["name"] == "other"
    assert change["before"]["payload"] != change["after"]["payload"]
    assert change["before"]["handler"] == change["after"]["handler"]
    text = str([change, made])
    assert not any(secret in text for secret in ("s3cret", "4111", "4222"))


async def test_who_has_set_a_job_going_is_noted_once_with_the_run(guarded: Caller):
    plain = (await guarded.create())["jobId"]
    root = (await guarded.create(name="root"))["jobId"]
    await guarded.create(name="leaf", dependsOn=[root])
    paused = (await guarded.create(every=3600))["jobId"]
    await guarded.post(f"/v1/jobs/{paused}:pause")
    for job in (plain, root):
        runs = {(await guarded.post(f"/v1/jobs/{job}:run", {}, idempotency_key=job)).json["runId"] for _ in range(2)}
        (entry,) = await entries(guarded, f"?subject={job}&action=runJob")
        assert {entry["after"]["runId"]} == runs
        assert (entry["actor"], entry["before"]) == ("acme", None)
    assert (await guarded.post(f"/v1/jobs/{paused}:run")).status == 409
    assert await entries(guarded, f"?subject={paused}&action=runJob") == []
    await guarded.submit()
    assert await entries(guarded, "?action=createRun") == []


async def test_what_changes_nothing_is_not_noted(api: Caller):
    job = (await api.create(every=3600))["jobId"]
    for _ in range(2):
        await api.post(f"/v1/jobs/{job}:pause")
    refused = await api("PATCH", f"/v1/jobs/{job}", {"every": "nonsense"})
    assert refused.status == 422
    again = [await api.post("/v1/jobs", PLAIN, idempotency_key="once") for _ in range(2)]
    assert again[0].content == again[1].content
    assert [each["action"] for each in await entries(api)] == ["createJob", "pauseJob", "createJob"]


async def test_pages_filters_and_other_tenants(api: Caller, stranger: Caller):
    jobs = [(await api.create(name=f"job {each}"))["jobId"] for each in range(5)]
    first: Answer = await api.get("/v1/audit?limit=2")
    second = await api.get(f"/v1/audit?limit=3&cursor={first.json['nextCursor']}")
    assert [each["subject"] for each in first.json["items"] + second.json["items"]] == jobs[::-1]
    assert second.json["nextCursor"] is None
    at = first.json["items"][0]["at"]
    assert len(await entries(api, f"?since={at}")) == 1
    assert len(await entries(api, f"?until={at}&action=createJob&outcome=done&actor=acme&ip=127.0.0.1")) == 4
    assert await entries(api, "?key=other") == await entries(api, "?request=other") == []
    assert await entries(stranger) == []
    assert (await api.get("/v1/audit?outcome=maybe")).status == 422
    assert (await api.get("/v1/audit?cursor=x")).status == 400


async def test_whoever_is_turned_away_is_noted(api: Caller, world: World):
    half = api.key[:-1] + ("A" if api.key[-1] != "A" else "B")
    for key in (None, half, "nonsense"):
        assert (await Caller(api.app, key).get("/v1/jobs")).status == 401
    assert await world.audit.flush() == 2
    assert await entries(api) == [], "nobody known tried it, so it is no tenant's"
    assert len(await entries(api, "?tenant=-")) == 2
    rows = await world.sql("SELECT tenant, actor, key, ip, action, outcome, after FROM audit ORDER BY key NULLS FIRST")
    assert [row["key"] for row in rows] == [None, api.key.split("_")[1]]
    assert {(row["tenant"], row["actor"], row["action"], row["outcome"]) for row in rows} == {
        (0, "unknown", "listJobs", "denied")
    }
    assert half not in str(rows)


async def test_whoever_may_not_is_noted_with_its_tenant(api: Caller, world: World):
    viewer = Caller(api.app, (await api.post("/v1/keys", {"name": "eyes", "role": "viewer"})).json["key"])
    for turn in range(3):
        assert (await viewer.post("/v1/jobs", PLAIN, x_request_id=f"try-{turn}")).status == 403
    assert (await viewer.get("/v1/audit")).status == 403
    assert await world.audit.flush() == 2
    read, wrote = await entries(api, "?outcome=denied")
    assert {read["action"], wrote["action"]} == {"createJob", "listAudit"}
    assert wrote["actor"] == "acme"
    assert sorted(each["after"]["attempts"] for each in (read, wrote)) == [1, 3]
    assert [each["action"] for each in await entries(api, "?request=try-0")] == ["createJob"], "the first of the three"


async def test_the_id_under_which_a_call_is_noted_is_told_to_whoever_made_it(api: Caller, world: World):
    made = await api.post("/v1/jobs", PLAIN)
    refused = await Caller(api.app, "nonsense").get("/v1/jobs")
    assert (await api.post("/v1/jobs", PLAIN)).headers["x-request-id"] != made.headers["x-request-id"]
    await world.audit.flush()
    (noted,) = await entries(api, f"?request={made.headers['x-request-id']}")
    assert noted["subject"] == made.json["jobId"]
    (noted,) = await entries(api, f"?tenant=-&request={refused.headers['x-request-id']}")
    assert (noted["action"], noted["outcome"]) == ("listJobs", "denied")


@pytest.mark.parametrize(("trusted", "who"), [([], "127.0.0.1"), (["127.0.0.0/8"], "198.51.100.1")])
async def test_behind_a_trusted_proxy_it_is_told_who_called_it(world: World, trusted: list[str], who: str):
    proxies = [ip_network(each) for each in trusted]
    api = Caller(application(world, proxies=proxies), world.key)
    forged = "1.2.3.4, 198.51.100.1"
    await api.post("/v1/jobs", PLAIN, x_forwarded_for=forged)
    assert (await Caller(api.app, "nonsense").get("/v1/jobs", x_forwarded_for=forged)).status == 401
    await world.audit.flush()
    assert {row["ip"] for row in await world.sql("SELECT ip FROM audit")} == {who}


async def test_a_token_that_was_made_up_is_noted(api: Caller, world: World):
    run = await api.submit()
    for token in ("fct_" + "0" * 104, "nonsense"):
        answer = await Caller(api.app, token).post(f"/v1/runs/{run}:complete", {"outcome": "succeeded"})
        assert answer.status == 401
    await world.audit.flush()
    (noted,) = await entries(api, "?tenant=-&action=completeRun")
    assert (noted["actor"], noted["outcome"], noted["after"]["attempts"]) == ("unknown", "denied", 2)
    assert noted["keyId"] is None


async def test_the_keys_of_others_see_only_their_own(api: Caller, stranger: Caller):
    await api.create()
    assert (
        (await stranger.get("/v1/audit?tenant=acme")).status == (await stranger.get("/v1/audit?tenant=x")).status == 404
    )
    assert (await stranger.get("/v1/audit?tenant=-")).status == 404
    assert await entries(stranger, "?tenant=rival") == await entries(stranger)
