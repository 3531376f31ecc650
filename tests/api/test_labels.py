"""What a job or a run requires of its worker: said, shown, changed, and refused if no worker could carry it."""

from typing import Any

import pytest

from api.calling import PLAIN, Caller
from foliot.store import fleet
from foliot.store.specs import ensure_lanes
from world import World


async def test_what_is_required_is_shown_in_one_form(api: Caller):
    job = await api.create(requires=["gpu", "eu", "gpu"])
    assert job["requires"] == ["eu", "gpu"]
    assert (await api.get(f"/v1/jobs/{job['jobId']}")).json["requires"] == ["eu", "gpu"]
    run = await api.submit(requires=["gpu"])
    assert (await api.get(f"/v1/runs/{run}")).json["requires"] == ["gpu"]
    assert "requires" not in await api.create()
    assert "requires" not in (await api.get(f"/v1/runs/{await api.submit()}")).json


async def test_a_change_replaces_it_as_a_whole_and_null_takes_it_away(api: Caller):
    job = (await api.create(requires=["gpu", "eu"]))["jobId"]

    async def change(**fields: Any) -> Any:
        return (await api("PATCH", f"/v1/jobs/{job}", fields)).json.get("requires")

    assert await change(priority="low") == ["eu", "gpu"]
    assert await change(requires=["us"]) == ["us"]
    assert await change(requires=None) is None
    assert await change(requires=["us"]) == ["us"]
    assert await change(requires=[]) is None


@pytest.mark.parametrize(
    ("requires", "field"),
    [
        (["gpu", "GPU"], "requires[1]"),
        ([""], "requires[0]"),
        (["a,b"], "requires[0]"),
        (["x" * 64], "requires[0]"),
        ([str(number) for number in range(9)], "requires"),
        ("gpu", "requires"),
        ([7], "requires[0]"),
    ],
)
async def test_what_no_worker_could_carry_is_refused(api: Caller, requires: Any, field: str):
    for address, body in (("/v1/jobs", PLAIN), ("/v1/runs", {"handler": "noop"})):
        answer = await api.post(address, {**body, "requires": requires})
        assert (answer.status, answer.field) == (422, field)


async def test_workers_are_listed_with_what_they_carry(api: Caller, world: World):
    hand = await world.worker()
    await fleet.register(hand.line, 9, "rich", [*await ensure_lanes(hand.line, ["default"], ["http"], ("eu", "gpu"))])
    workers = {each["name"]: each["labels"] for each in (await api.get("/v1/workers")).json["items"]}
    assert workers == {"hand 1": [], "rich": ["eu", "gpu"]}
