"""Idempotency-Key: what creates something does it once, and says the same again."""

import asyncio
from typing import Any

import pytest

from api.calling import PLAIN, Caller, rows
from burying import bury
from foliot.api.app import OPERATIONS
from foliot.domain.access import Role
from foliot.domain.ids import encode
from foliot.services.tenants import Tenants
from world import World

DAY = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
ONCE = [each for each in OPERATIONS if each.idempotent_by_key]
UNTOLD = {"importCalendar", "completeRun"}
"""These say what is to be, however often they are said."""


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
        assert each.idempotent_by_key or not creates or each.name in UNTOLD, each.name


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
