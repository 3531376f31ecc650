"""Another tenant's id is answered like one that never was, wherever it stands: path, query, body or cursor.

The places are found in the document, so that a new one cannot be forgotten.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from api.calling import PLAIN, Answer, Caller, rows
from api.test_table import IN_GRAPH
from burying import bury
from foliot.api.app import OPERATIONS
from foliot.api.openapi import document
from foliot.api.operation import WITHOUT_KEY, Operation
from foliot.api.paging import is_paged, list_of
from foliot.domain.access import AT_THE_DATABASE, NewKey, Role
from foliot.domain.ids import decode, encode
from foliot.services.keys import Keys
from foliot.services.paging import Paging
from world import World

Things = Mapping[str, str]

DOCUMENT = document(OPERATIONS)
BY_NAME = {operation.name: operation for operation in OPERATIONS}
KINDS = {
    "job": "job", "jobId": "job", "dependsOn": "job", "run": "run", "runId": "run", "runIds": "dead",
    "operation": "operation", "calendar": "calendar", "tenant": "tenant", "keyId": "keyId", "cursor": "cursor",
    "secret": "secret",
}  # fmt: skip
"""What is somebody's, by the name of the field that says whose or which."""
SHARED = {"worker", "queue", "key"}
"""Workers and queues are everybody's; the key of a job is a name that each tenant gives for itself."""
DEAD = {"getDeadLetter", "retryRun"}
WORK = {operation.name for operation in OPERATIONS if operation.scope == "work"}
"""What workers say of runs has a test of its own."""
OF_NO_TENANT = {"listWorkers", "listQueues", "listTenants"}
"""Lists that are the operator's."""
BODIES: dict[str, Any] = {
    "createJob": {**PLAIN, "every": 60},
    "createJobs": {"jobs": [{**PLAIN, "every": 60}]},
    "putJobByKey": {**PLAIN, "every": 60},
    "changeJob": {"every": 60},
    "backfillJob": {"from": "2026-02-01T00:00:00Z", "until": "2026-02-02T00:00:00Z", "dryRun": True},
    "createRun": {"handler": "noop"},
    "createRuns": {"runs": [{"handler": "noop"}]},
    "putCalendar": {"timezone": "UTC"},
    "importCalendar": {"ics": "BEGIN:VCALENDAR\nEND:VCALENDAR"},
    "replayDeadLetters": {"filter": {}, "dryRun": True},
    "discardDeadLetters": {"filter": {}, "dryRun": True},
    "createTenant": {"name": "new"},
    "changeTenant": {"weight": 2},
    "createKey": {"name": "new"},
    "limitKey": {"rateLimit": {"perSecond": 1_000}},
    "putSecret": {"value": "another"},
    "switchEncryption": {"enabled": True},
    "completeRun": {"outcome": "succeeded"},
}
OURS = {"content-length", "x-request-id"}
"""Headers that differ from call to call."""
WRITES_A_CALENDAR = {"putCalendar", "importCalendar", "putSecret"}
"""A name that is free makes one's own: there is nothing to compare."""


class Slot(NamedTuple):
    """One place of an operation where an id can stand."""

    operation: str
    place: str
    path: tuple[str, ...]

    @property
    def kind(self) -> str:
        kind = KINDS[next(part for part in reversed(self.path) if part in KINDS)]
        return "dead" if kind == "run" and self.operation in DEAD else kind

    def __str__(self) -> str:
        return f"{self.operation} {self.place} {'.'.join(self.path)}"


def _fields(schema: Mapping[str, Any], path: tuple[str, ...] = (), seen: frozenset[str] = frozenset()) -> Iterator[Any]:
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        if name not in seen:
            yield from _fields(DOCUMENT["components"]["schemas"][name], path, seen | {name})
        return
    for choice in [*schema.get("anyOf", []), *schema.get("allOf", []), *schema.get("oneOf", [])]:
        yield from _fields(choice, path, seen)
    for name, inner in schema.get("properties", {}).items():
        yield (*path, name)
        yield from _fields(inner, (*path, name), seen)
    if isinstance(schema.get("items"), dict):
        yield from _fields(schema["items"], (*path, "[]"), seen)


def _slots() -> Iterator[Slot]:
    for methods in DOCUMENT["paths"].values():
        for described in methods.values():
            name = described["operationId"]
            if name in WORK:
                continue
            for each in described["parameters"]:
                if each["in"] != "header" and each["name"] not in SHARED:
                    yield Slot(name, each["in"], (each["name"],))
            if body := described.get("requestBody"):
                yield from (Slot(name, "body", path) for path in _fields(body["content"]["application/json"]["schema"]))


def _is_an_id(slot: Slot) -> bool:
    *before, last = slot.path
    return slot.place == "path" or last in KINDS or (last == "name" and before[-1:] == ["calendar"])


SLOTS = sorted({slot for slot in _slots() if _is_an_id(slot)})


def _set(body: Any, path: tuple[str, ...], value: Any) -> Any:
    """The body with `value` at that place."""
    if not path:
        return value
    first, *rest = path
    if first == "[]":
        return [_set(body[0] if body else {}, tuple(rest), value)]
    old = body if isinstance(body, dict) else {}
    return {**old, first: _set(old.get(first), tuple(rest), value)}


async def _call(caller: Caller, slot: Slot, own: Things, value: str) -> Answer:
    operation = BY_NAME[slot.operation]
    given = {**own, "run": own["dead"] if slot.operation in DEAD else own["run"], "key": "some-key"}
    given |= {"worker": encode("wrk", 1), "queue": "default"}
    if slot.place == "path":
        given[slot.path[0]] = value
    address = re.sub(r"{(\w+)}", lambda found: given[found[1]], operation.path)
    if slot.place == "query":
        timing = "every=60&" if slot.operation == "previewSchedule" and slot.path != ("job",) else ""
        address += f"?{timing}{slot.path[0]}={value}"
    body = BODIES.get(slot.operation)
    if slot.place == "body":
        body = _set(
            _without_filter(body, slot), slot.path, [value] if slot.path[-1] in {"runIds", "dependsOn"} else value
        )
    return await caller(operation.method, address, body)


def _without_filter(body: Any, slot: Slot) -> Any:
    """What does not go together with the field that is tried is left out."""
    if slot.path == ("runIds",):
        return {}
    if "dependsOn" in slot.path:
        return {"jobs": [PLAIN]} if "jobs" in body else {name: body[name] for name in body if name != "every"}
    return body


def _masked(answer: Answer, value: str) -> tuple[int, dict[str, str], bytes]:
    content = answer.content.replace(value.encode(), b"(id)")
    headers = {name: text.replace(value, "(id)") for name, text in answer.headers.items() if name not in OURS}
    return answer.status, headers, content


async def _things(world: World, caller: Caller, name: str) -> dict[str, str]:
    """Two of everything that a tenant can own, the first of each by its id; and where the second page begins."""
    tenant = await world.value("SELECT id FROM tenant WHERE name = $1", name)
    for number in range(2):
        await caller("PUT", f"/v1/calendars/{name}-days-{number}", {"timezone": "UTC"})
        await caller("PUT", f"/v1/secrets/{name}-token-{number}", {"value": "one"})
        job = (await caller.create(every=3600))["jobId"]
        run = (await caller.post(f"/v1/jobs/{job}:run", {"delay": 3600})).json["runId"]
        range_ = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
        operation = (await caller.post(f"/v1/jobs/{job}:backfill", range_)).json["operationId"]
        dead = [encode("run", each) for each in await bury(world, 3, tenant=tenant, job=decode("job", job))]
        key = await Keys(world.database).create(AT_THE_DATABASE, NewKey("one", Role.VIEWER), name)
    ids = {"job": job, "run": run, "operation": operation, "calendar": f"{name}-days-0", "tenant": name}
    ids |= {"secret": f"{name}-token-0"}
    ids |= {"keyId": key.key_id, "dead": dead[0], "discardDeadLetters": dead[1], "retryRun": dead[2]}
    for each in OPERATIONS:
        if is_paged(each.query):
            path = {part: ids[part] for part in re.findall(r"{(\w+)}", each.path)}
            first = await caller.get(f"{each.path.format(**path)}?limit=1")
            ids[each.name] = first.json.get("nextCursor") or await _signed(world, each, tenant, path)
    return ids


async def _signed(world: World, operation: Operation, tenant: int, path: Things) -> str:
    """Where the second page would begin of a list that has none here; from the hand that writes all cursors."""
    place = list_of(operation.name, tenant, path, operation.query())
    return (await Paging(world.database).cursors()).write(place, encode("c", 1))


def _random(kind: str, theirs: str) -> str:
    match kind:
        case "job" | "run" | "dead" | "operation":
            prefix = theirs.partition("_")[0]
            return encode(prefix, decode(prefix, theirs) + 4_096)
        case "cursor":
            return theirs[:-1] + ("0" if theirs[-1] != "0" else "1")
        case "keyId":
            return "key_" + "a" * 12
        case _:
            return "nobodys"


def test_every_field_that_names_something_is_known():
    """A field called like an id must be in one of the lists above."""
    known = KINDS.keys() | SHARED
    for slot in _slots():
        name = slot.path[-1]
        if slot.place == "path" or re.search(r"(Id|Ids|cursor)$", name):
            assert name in known, slot
    assert len(SLOTS) > 45


@pytest.mark.parametrize("role", ["the owner's", "the API's"])
async def test_another_tenants_id_is_answered_byte_for_byte_like_one_that_never_was(
    world: World, guarded: Caller, api: Caller, stranger: Caller, role: str, subtests: pytest.Subtests
):
    if role == "the API's":
        api, stranger = guarded, Caller(guarded.app, stranger.key)
    theirs, own = await _things(world, api, "acme"), await _things(world, stranger, "rival")
    before = await rows(world)
    for slot in SLOTS:
        if slot.operation in WRITES_A_CALENDAR and slot.place == "path":
            continue
        foreign_id = theirs[slot.kind] if slot.kind != "cursor" else theirs.get(slot.operation, "")
        if slot.kind == "cursor" and slot.operation in OF_NO_TENANT:
            continue
        with subtests.test(str(slot)):
            assert foreign_id, "there is nothing to try it with"
            random_id = _random(slot.kind, foreign_id)
            foreign = await _call(stranger, slot, own, foreign_id)
            unknown = await _call(stranger, slot, own, random_id)
            assert foreign.status < 500
            assert slot.place != "path" or foreign.status in {401, 403, 404}
            assert _masked(foreign, foreign_id) == _masked(unknown, random_id)
            said = foreign.content.decode().replace(foreign_id, "")
            assert not any(text in said for text in theirs.values() if text)
    after = await rows(world)
    assert {name for name in before if before[name] != after[name]} <= {"operation"}, "something was made"


async def test_ones_own_id_is_answered_otherwise(world: World, stranger: Caller, subtests: pytest.Subtests):
    """What the test above compares is what the id is answered with, and not that the call makes no sense."""
    own = await _things(world, stranger, "rival")
    last = {"cancelJob", "deleteJob", "deleteCalendar", "revokeKey", "replayDeadLetters", "deleteSecret"}
    for slot in sorted(SLOTS, key=lambda slot: (slot.operation in last, slot)):
        if slot.kind == "cursor" or "dependsOn" in slot.path or slot.operation in WRITES_A_CALENDAR:
            continue
        if BY_NAME[slot.operation].scope in {"tenants:write", WITHOUT_KEY} or slot.operation in IN_GRAPH:
            continue
        with subtests.test(str(slot)):
            mine = own.get(slot.operation, own[slot.kind]) if slot.kind == "dead" else own[slot.kind]
            random_id = _random(slot.kind, mine)
            found, unknown = await _call(stranger, slot, own, mine), await _call(stranger, slot, own, random_id)
            assert _masked(found, mine) != _masked(unknown, random_id)
            assert found.status in {200, 201, 409} or slot.operation == "deleteCalendar"


def _told(run: str, fence: int, tenant: int) -> dict[str, Any]:
    return {
        "runId": run,
        "fence": fence,
        "position": 1,
        "tenant": tenant,
        "attempt": 0,
        "scheduledAt": "2026-01-01T00:00:00Z",
        "startedAt": "2026-01-01T00:00:00Z",
        "outcome": {"ending": 2, "event": "died", "error": "forged"},
    }


async def test_a_worker_changes_nothing_of_runs_that_it_does_not_hold(world: World, api: Caller, stranger: Caller):
    """Neither by their ids nor by their fences nor by their tenants, whoever has them: waiting, running or over."""
    made = await Keys(world.database).create(AT_THE_DATABASE, NewKey("mail", Role.WORKER, serves=["mail"]), "rival")
    machine, worker = Caller(api.app, made.key), encode("wrk", 77)
    told = {"name": "w", "queues": ["mail"], "groups": ["fn:noop"]}
    assert (await machine.post("/v1/work/heartbeat", {"worker": worker, "register": told})).status == 200
    (dead,) = await bury(world)
    await world.submit()
    (held,) = await (await world.worker()).claim()
    keep = "INSERT INTO checkpoint (run, fence, state, saved_at) VALUES ($1, $2, $3, now())"
    await world.sql(keep, held.id, held.fence, b'"mine"')
    before, claims = await rows(world), await world.count("claim")
    for run in (held.id, dead):
        answers = []
        for number, fence in ((run, held.fence), (run + 4_096, held.fence + 4_096)):
            name = encode("run", number)
            success = {"fence": fence, "runId": [name], "position": [1], "startedAt": ["2026-01-01T00:00:00Z"]}
            ended = _told(name, fence, world.tenant)
            for path, body in (
                ("settle", {"succeeded": [success], "forget": [fence]}),
                ("settle", {"ended": [ended]}),
                ("settle", {"doubted": [ended]}),
                ("heartbeat", {"started": {"runId": [name], "fence": [fence], "startedAt": ["2026-01-01T00:00:00Z"]}}),
                ("claim", {"known": [fence]}),
                ("report", {"told": [{"runId": name, "fence": fence, "checkpoint": "forged"}]}),
                ("report", {"wanted": {"runId": name, "fence": fence}}),
                ("secrets", {"runId": name, "fence": fence, "names": ["token"]}),
                ("claim", {"wait": 0, "settle": {"worker": worker, "ended": [ended]}}),
            ):
                answer = await machine.post(f"/v1/work/{path}", {"worker": worker, **body})
                assert answer.status < 500, answer.content
                answers.append((path, answer.content.replace(name.encode(), b"run").replace(str(fence).encode(), b"1")))
        assert answers[: len(answers) // 2] == answers[len(answers) // 2 :]
    assert await rows(world) == before
    assert await world.count("late_result") == 0
    assert await world.value("SELECT state FROM checkpoint") == b'"mine"'
    assert await world.count("claim") == claims
    assert await world.value("SELECT started_at IS NULL FROM run WHERE id = $1", held.id)
