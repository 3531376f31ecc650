"""Idempotency-Key: what changes something does it once, and says the same again."""

import asyncio
import json
from typing import Any

import pytest

from api.calling import DOCUMENT, PLAIN, Caller, rows
from api.test_table import BODIES, LAST, WITH_ID, address, number, owned  # noqa: F401 - a fixture
from burying import bury
from foliot.api.app import OPERATIONS
from foliot.domain.access import Role
from foliot.domain.errors import InvalidField
from foliot.domain.ids import encode
from foliot.services.once import Once
from foliot.services.tenants import Tenants
from foliot.store import submission
from foliot.store.submission import Asked
from foliot.wire.codec import fingerprint
from world import World

KEPT = ("location", "etag")

DAY = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
ONCE = [each for each in OPERATIONS if each.keeps_first_answer]
UNTOLD = {"importCalendar", "completeRun"}
"""These say what is to be, however often they are said."""
CHANGES = [each for each in OPERATIONS if each.takes_key]


@pytest.fixture
async def bodies(world: World, api: Caller) -> dict[str, tuple[str, Any, Any]]:
    """Of every operation that creates: where, with what, and something else of which the same key cannot speak too."""
    job = (await api.create(every=3600))["jobId"]
    (first, second) = (encode("run", each) for each in await bury(world, 2))
    key = (await api.post("/v1/keys", {"name": "old"})).json["keyId"]
    return {
        "createJob": ("/v1/jobs", PLAIN, {**PLAIN, "name": "other"}),
        "createJobs": ("/v1/jobs:batch", {"jobs": [PLAIN] * 3}, {"jobs": [PLAIN]}),
        "runJob": (f"/v1/jobs/{job}:run", {"delay": 60}, {"delay": 61}),
        "backfillJob": (f"/v1/jobs/{job}:backfill", DAY, {**DAY, "concurrency": 2}),
        "createRun": ("/v1/runs", {"handler": "noop", "delay": 60}, {"handler": "noop"}),
        "createRuns": ("/v1/runs:batch", {"runs": [{"handler": "noop"}] * 3}, {"runs": [{"handler": "noop"}]}),
        "replayDeadLetters": ("/v1/dead-letters:replay", {"runIds": [first]}, {"runIds": [second]}),
        "discardDeadLetters": ("/v1/dead-letters:discard", {"runIds": [second]}, {"runIds": [first]}),
        "createKey": ("/v1/keys", {"name": "new"}, {"name": "newer"}),
        "rotateKey": (f"/v1/keys/{key}:rotate", {"overlap": "PT1H"}, {"overlap": "PT2H"}),
        "createTenant": ("/v1/tenants", {"name": "new"}, {"name": "newer"}),
    }


def test_everything_that_creates_takes_a_key():
    for each in OPERATIONS:
        creates = each.method == "POST" and (each.status in {201, 202} or each.name.startswith(("create", "replay")))
        assert each.keeps_first_answer or not creates or each.name in UNTOLD, each.name


async def test_the_same_key_creates_once_also_in_parallel_and_is_answered_as_at_first(
    api: Caller, world: World, bodies: dict[str, Any], subtests: pytest.Subtests
):
    for each in ONCE:
        with subtests.test(each.name):
            address, body, other = bodies[each.name]
            calls = [api.post(address, body, idempotency_key=each.name) for _ in range(4)]
            first, *more = await asyncio.gather(*calls)
            assert first.status in {each.status, 202}, first.content
            counts = [await rows(world), await world.count("api_key"), await world.count("tenant")]
            for again in [*more, await api.post(address, body, idempotency_key=each.name)]:
                assert (again.status, again.content) == (first.status, first.content)
                assert again.headers.get("location") == first.headers.get("location")
            assert (await api.post(address, other, idempotency_key=each.name)).field == "Idempotency-Key"
            assert [await rows(world), await world.count("api_key"), await world.count("tenant")] == counts


def test_every_write_takes_a_key_but_for_those_that_have_another_way_to_happen_once():
    others = {each.name for each in OPERATIONS if each.method != "GET" and not each.takes_key}
    assert others == {"completeRun", *(each.name for each in OPERATIONS if each.scope == "work")}
    for each in OPERATIONS:
        parameters = [found["name"] for found in DOCUMENT["paths"][each.path][each.method.lower()]["parameters"]]
        assert ("Idempotency-Key" in parameters) is each.takes_key, each.name


async def test_every_change_is_made_once_and_its_key_stands_for_nothing_else(
    api: Caller,
    world: World,
    owned: dict[str, int],  # noqa: F811 - the fixture
    subtests: pytest.Subtests,
):
    bodies = {**BODIES, "discardDeadLetters": {"runIds": [encode("run", 0)]}}  # a dry run does nothing even once
    for each in sorted(CHANGES, key=lambda each: each.name in {*LAST, "rotateEncryption"}):
        with subtests.test(each.name):
            where = address(each, number(each, owned) if each in WITH_ID else 0)
            body = b"" if each.name not in bodies else json.dumps(bodies[each.name]).encode()
            calls = [api(each.method, where, raw=body, idempotency_key=each.name) for _ in range(3)]
            first, *more = await asyncio.gather(*calls)
            assert first.status in {each.status, *each.also}, first.content
            told = await world.count("audit")
            for again in [*more, await api(each.method, where, raw=body, idempotency_key=each.name)]:
                assert (again.status, again.content) == (first.status, first.content)
                assert [again.headers.get(name) for name in KEPT] == [first.headers.get(name) for name in KEPT]
            other = await api(each.method, where, raw=(body or b"{}") + b" ", idempotency_key=each.name)
            assert other.field == "Idempotency-Key"
            assert await world.count("audit") == told


async def test_a_query_is_part_of_what_a_key_stands_for(api: Caller):
    job = (await api.create())["jobId"]
    assert (await api("DELETE", f"/v1/jobs/{job}", idempotency_key="a")).status == 200
    assert (await api("DELETE", f"/v1/jobs/{job}?purge=true", idempotency_key="a")).field == "Idempotency-Key"
    assert (await api.get(f"/v1/jobs/{job}")).status == 200
    for _ in range(2):
        assert (await api("DELETE", f"/v1/jobs/{job}?purge=true", idempotency_key="b")).status == 200


async def test_what_was_refused_may_be_mended_under_the_same_key(api: Caller):
    job = (await api.create())["jobId"]
    assert (await api("PATCH", f"/v1/jobs/{job}", {"name": ""}, idempotency_key="a")).status == 422
    assert (await api("PATCH", f"/v1/jobs/{job}", {"name": "b"}, if_match='"9"', idempotency_key="a")).status == 412
    for _ in range(2):  # the second time it is at another version, and the answer the same
        changed = await api("PATCH", f"/v1/jobs/{job}", {"name": "c"}, if_match='"1"', idempotency_key="a")
        assert (changed.status, changed.json["version"]) == (200, 2)


async def test_who_finds_a_key_that_somebody_died_with_does_it_again(world: World):
    asked = Asked(world.tenant, "a", b"digest")
    assert await submission.begin(world.database, asked) is None  # and nothing more is heard of that one
    once, done = Once(world.database, patience=0), []

    async def deed() -> bytes:
        done.append(1)
        return b"%d" % len(done)

    assert [await once.do(asked, deed) for _ in range(3)] == [b"1"] * 3
    with pytest.raises(InvalidField):
        await once.do(asked._replace(fingerprint=b"another"), deed)


async def test_of_two_at_once_the_slower_gets_the_answer_of_the_faster(world: World):
    asked, begun, goes_on = Asked(world.tenant, "a", b"digest"), asyncio.Event(), asyncio.Event()
    once = Once(world.database)

    async def deed() -> bytes:
        begun.set()
        await goes_on.wait()
        return b"first"

    async def never() -> bytes:
        raise AssertionError("it is being done")

    async with asyncio.TaskGroup() as group:
        first = group.create_task(once.do(asked, deed))
        await begun.wait()
        second = group.create_task(once.do(asked, never))
        goes_on.set()
    assert (first.result(), second.result()) == (b"first", b"first")


async def test_a_secret_cannot_be_found_out_from_the_key_that_it_was_written_under(api: Caller, world: World):
    assert (await api("PUT", "/v1/secrets/pin", raw=b'{"value":"1234"}', idempotency_key="a")).status == 201
    (kept,) = await world.sql("SELECT fingerprint, answer FROM idempotency")
    assert b"1234" not in kept["answer"]
    assert kept["fingerprint"] != fingerprint("PUT", "/v1/secrets/pin", b'{"value":"1234"}')


async def test_a_key_that_was_made_is_told_again_only_to_who_asked_for_it(api: Caller, world: World):
    made = await api.post("/v1/keys", {"name": "new"}, idempotency_key="a")
    (kept,) = await world.sql("SELECT answer FROM idempotency")
    assert made.json["key"].encode() not in kept["answer"]
    other = Caller(api.app, await Tenants(world.database).issue_key("acme", "colleague", role=Role.ADMIN))
    refused = await other.post("/v1/keys", {"name": "new"}, idempotency_key="a")
    assert refused.status == 409
    assert made.json["key"] not in refused.content.decode()
    assert "Idempotency-Key" in refused.json["detail"]


async def test_two_tenants_may_use_the_same_key(api: Caller, stranger: Caller):
    mine, theirs = [await each.post("/v1/jobs", PLAIN, idempotency_key="a") for each in (api, stranger)]
    assert (mine.status, theirs.status) == (201, 201)
    assert mine.json["jobId"] != theirs.json["jobId"]
