"""What holds for every operation is generated from the table of operations."""

import re
from typing import Any

import pytest

from api.calling import PLAIN, Caller, application
from burying import bury
from foliot.api.app import OPERATIONS
from foliot.api.operation import WITHOUT_KEY, Operation
from foliot.domain.access import Scope
from foliot.domain.ids import decode, encode
from foliot.kit.tokens import with_check
from foliot.services.tenants import REMEMBERED, Tenants
from world import World

WITH_ID = [operation for operation in OPERATIONS if re.search(r"{(job|run|operation)}", operation.path)]
WORKER = encode("wrk", 7)
BODIES: dict[str, Any] = {
    "createJob": PLAIN,
    "createJobs": {"jobs": [PLAIN]},
    "putJobByKey": PLAIN,
    "changeJob": {"name": "other"},
    "backfillJob": {"from": "2026-02-01T00:00:00Z", "until": "2026-02-02T00:00:00Z"},
    "completeRun": {"outcome": "succeeded"},
    "createRun": {"handler": "noop"},
    "createRuns": {"runs": [{"handler": "noop"}]},
    "putCalendar": {"timezone": "UTC"},
    "replayDeadLetters": {"runIds": [encode("run", 0)]},
    "discardDeadLetters": {"filter": {}, "dryRun": True},
    "heartbeat": {"worker": WORKER, "register": {"name": "w", "queues": ["default"], "groups": ["fn:noop"]}},
    "claimWork": {"worker": WORKER},
    "settleWork": {"worker": WORKER},
    "reportWork": {"worker": WORKER},
    "importCalendar": {"ics": "BEGIN:VCALENDAR\nEND:VCALENDAR"},
    "changeTenant": {"limits": {"concurrency": 100}},
    "createTenant": {"name": "new"},
    "createKey": {"name": "new"},
    "limitKey": {"rateLimit": {"perSecond": 1_000}},
    "putSecret": {"value": "another"},
    "switchEncryption": {"enabled": True},
    "lookAtProcesses": {"host": "here", "pids": [1]},
    "readSecrets": {"worker": WORKER, "runId": encode("run", 0), "fence": 1, "names": ["token"]},
}

CALENDAR = "holidays"
KEY = "key_" + "k" * 12
DEAD = {"getDeadLetter", "retryRun"}
"""Operations on a run that is dead."""
LAST = {"cancelJob", "deleteJob", "revokeKey", "deleteSecret"}
"""Operations after which others find nothing to do."""
IN_GRAPH = {"getGraph", "cancelGraph"}
"""Operations on a run of a graph."""
QUERIES = {"previewSchedule": "?every=60"}


def address(operation: Operation, number: int = 0) -> str:
    """Where to call it about the job, run or operation of this number."""
    path = operation.path
    for name, prefix in (("job", "job"), ("run", "run"), ("operation", "op")):
        path = path.replace(f"{{{name}}}", encode(prefix, number))
    path = path.replace("{calendar}", CALENDAR).replace("{queue}", "default").replace("{worker}", encode("wrk", 1))
    path = path.replace("{keyId}", KEY).replace("{tenant}", "acme").replace("{secret}", "token")
    return path.replace("{key}", "some-key") + QUERIES.get(operation.name, "")


@pytest.fixture
async def owned(world: World, api: Caller) -> dict[str, int]:
    """A job, a run that waits, a dead one, one of a graph, an operation and a calendar; and a worker of everybody."""
    await world.worker()
    await world.sql(
        "INSERT INTO api_key (id, tenant, digest, label) VALUES ($1, $2, $3, 'old')",
        KEY.removeprefix("key_"),
        world.tenant,
        bytes(32),
    )
    assert (await api("PUT", f"/v1/calendars/{CALENDAR}", {"timezone": "UTC"})).status == 201
    assert (await api("PUT", "/v1/secrets/token", {"value": "one"})).status == 201
    made = await api.create(every=3600)
    run = await api.submit(delay=3600)
    range_ = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
    begun = (await api.post(f"/v1/jobs/{made['jobId']}:backfill", range_)).json["operationId"]
    (dead,) = await bury(world)
    root = await api.create(key="root")
    await api.create(dependsOn=["root"])
    graph = (await api.post(f"/v1/jobs/{root['jobId']}:run")).json["runId"]
    ids = {"job": decode("job", made["jobId"]), "run": decode("run", run), "operation": decode("op", begun)}
    return {**ids, "dead": dead, "graph": decode("run", graph)}


def number(operation: Operation, owned: dict[str, int]) -> int:
    if operation.name in DEAD:
        return owned["dead"]
    if operation.name in IN_GRAPH:
        return owned["graph"]
    return next(owned[name] for name in owned if f"{{{name}}}" in operation.path)


def test_every_operation_says_which_scope_it_needs():
    for operation in OPERATIONS:
        assert operation.scope in (set(Scope) if operation.needs_key else {WITHOUT_KEY}), operation.name
        assert operation.scope.endswith("read") == (operation.method == "GET"), operation.name


def test_names_and_addresses_are_unique():
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)
    assert len({(operation.method, operation.path) for operation in OPERATIONS}) == len(OPERATIONS)


def test_an_operation_without_a_scope_that_keys_have_cannot_exist():
    first = OPERATIONS[0]
    for scope in ("", "everything", "jobs"):
        with pytest.raises(ValueError, match="no scope"):
            Operation(name="x", method="GET", path="/x", scope=scope, summary="", handler=first.handler, result=None)


def test_every_scope_opens_something():
    assert {operation.scope for operation in OPERATIONS} == {*Scope, WITHOUT_KEY}


async def test_without_a_valid_key_every_operation_answers_401(
    api: Caller, owned: dict[str, int], subtests: pytest.Subtests
):
    secret = api.key[:17] + api.key[17:60][::-1]  # of the right id, and whole
    wrong = {
        "none": {},
        "empty": {"authorization": ""},
        "no scheme": {"authorization": api.key},
        "another scheme": {"authorization": f"Basic {api.key}"},
        "nonsense": {"authorization": "Bearer nonsense"},
        "a wrong secret": {"authorization": f"Bearer {with_check(secret)}"},
        "a letter less": {"authorization": f"Bearer {api.key[:-1]}"},
        "an unknown key": {"authorization": f"Bearer fol_{'a' * 12}_{'b' * 43}"},
        "bytes": {"authorization": "Bearer \xff\xfe"},
    }
    nobody = Caller(api.app, None)
    for operation in OPERATIONS:
        for what, headers in wrong.items():
            with subtests.test(f"{operation.name}, {what}"):
                where = address(operation, number(operation, owned) if operation in WITH_ID else 0)
                answer = await nobody(operation.method, where, BODIES.get(operation.name), **headers)
                assert answer.status == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.json["hint"]


@pytest.mark.parametrize("end", ["revoked_at", "expires_at"])
async def test_a_key_that_ended_works_no_longer_than_it_is_remembered(
    api: Caller, world: World, owned: dict[str, int], subtests: pytest.Subtests, end: str
):
    now = [0.0]
    known = Caller(application(world, Tenants(world.database, lambda: now[0])), api.key)
    assert (await known.get("/v1/jobs")).status == 200
    await world.sql(f"UPDATE foliot.api_key SET {end} = clock_timestamp()")
    now[0] = REMEMBERED + 0.1
    for operation in OPERATIONS:
        with subtests.test(operation.name):
            where = address(operation, number(operation, owned) if operation in WITH_ID else 0)
            assert (await known(operation.method, where, BODIES.get(operation.name))).status == 401


async def test_every_operation_works_for_the_owner(guarded: Caller, owned: dict[str, int], subtests: pytest.Subtests):
    """Where the server itself shows one tenant's rows only; the other tests are without that."""
    with_key = [operation for operation in OPERATIONS if operation.needs_key]
    for operation in sorted(with_key, key=lambda each: each.name in LAST):
        with subtests.test(operation.name):
            where = address(operation, number(operation, owned) if operation in WITH_ID else 0)
            answer = await guarded(operation.method, where, BODIES.get(operation.name))
            assert answer.status in {operation.status, 201}, answer.content


async def test_lists_show_only_what_is_ones_own(api: Caller, stranger: Caller, owned: dict[str, int]):
    job = encode("job", owned["job"])
    lists = ("/v1/jobs", "/v1/runs", f"/v1/runs?job={job}", "/v1/operations", f"/v1/operations?job={job}")
    for address_ in (*lists, "/v1/calendars", "/v1/dead-letters"):
        assert (await stranger.get(address_)).json == {"items": [], "nextCursor": None}
    assert len((await api.get("/v1/jobs")).json["items"]) == 3
    assert len((await api.get("/v1/runs")).json["items"]) == 4


async def test_a_key_of_another_tenants_job_is_free_for_ones_own(api: Caller, stranger: Caller):
    mine = await api("PUT", "/v1/jobs/by-key/load", PLAIN)
    theirs = await stranger("PUT", "/v1/jobs/by-key/load", PLAIN)
    assert (mine.status, theirs.status) == (201, 201)
    assert mine.json["jobId"] != theirs.json["jobId"]


async def test_an_idempotency_key_of_another_tenant_is_free_for_ones_own(api: Caller, stranger: Caller):
    mine = await api.post("/v1/runs", {"handler": "noop"}, idempotency_key="same")
    theirs = await stranger.post("/v1/runs", {"handler": "noop"}, idempotency_key="same")
    assert mine.json != theirs.json


async def test_what_no_operation_answers_is_a_problem_too(api: Caller):
    assert (await api.get("/v1/nothing")).json["status"] == 404
    assert (await api("PUT", "/v1/jobs", PLAIN)).json["status"] == 405
    assert (await api.post(f"/v1/jobs/{encode('job', 1)}:explode")).status == 405
