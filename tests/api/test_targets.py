"""Targets that no worker would call are refused at the door."""

import pytest

from api.calling import PLAIN, Caller, application
from foliot.domain.egress import Egress
from world import World

INSIDE = "http://169.254.169.254/latest"


@pytest.fixture
async def guarded(world: World) -> Caller:
    return Caller(application(world, egress=Egress.parse(["public"], ["*.corp.example"])), world.key)


@pytest.mark.parametrize(
    "url", [INSIDE, "http://[::ffff:10.0.0.1]/", "http://localhost:80/", "https://a.corp.example/"]
)
async def test_a_target_that_is_certain_to_be_refused_is_told_where_it_is_named(guarded: Caller, url: str):
    refused = await guarded.post("/v1/jobs", {**PLAIN, "handler": url})
    assert refused.field == "handler"
    assert "FOLIOT_HTTP_" in refused.json["errors"][0]["hint"]
    whole = {"type": "http", "url": url}
    assert (await guarded("PUT", "/v1/jobs/by-key/k", {**PLAIN, "handler": whole})).field == "handler.url"
    assert (await guarded.post("/v1/runs", {"handler": url})).field == "handler"
    batch = [{"handler": "noop"}, {"handler": url}]
    assert (await guarded.post("/v1/runs:batch", {"runs": batch})).field == "runs[1].handler"
    jobs = [PLAIN, {**PLAIN, "handler": whole}]
    assert (await guarded.post("/v1/jobs:batch", {"jobs": jobs})).field == "jobs[1].handler.url"


async def test_names_are_left_to_the_workers(guarded: Caller):
    await guarded.create(handler="https://reports.internal/run")
    await guarded.submit(handler="https://example.com/")


async def test_a_job_whose_target_was_forbidden_later_can_still_be_changed(world: World, guarded: Caller):
    job = (await Caller(application(world), world.key).create(handler=INSIDE))["jobId"]
    assert (await guarded("PATCH", f"/v1/jobs/{job}", {"name": "other"})).status == 200
    assert (await guarded("PATCH", f"/v1/jobs/{job}", {"handler": INSIDE})).field == "handler"
