"""`dependsOn` and graphs over HTTP."""

import asyncio
from typing import Any

import pytest

from api.calling import Caller, rows
from foliot.domain.graph import MOST_EDGES, MOST_NODES
from world import World

DAILY = {"cronExpression": "0 3 * * *"}


def job(key: str, *parents: Any, **fields: Any) -> dict[str, Any]:
    return {"name": key, "key": key, "handler": "noop", "dependsOn": list(parents), **fields}


async def test_jobs_of_one_call_depend_on_each_other_by_key_and_are_read_as_a_graph(api: Caller, world: World):
    made = await api.post(
        "/v1/jobs:batch",
        {
            "jobs": [
                job("load", "extract", {"job": "check", "when": "done"}),
                job("check", "extract"),
                job("extract", **DAILY),
            ]
        },
    )
    load, check, extract = made.json["jobIds"]
    read = (await api.get(f"/v1/jobs/{load}")).json
    assert read["dependsOn"] == [{"job": extract, "when": "success"}, {"job": check, "when": "done"}]
    assert read["scheduleType"] == "recurring"
    assert read["nextRunAt"] == (await api.get(f"/v1/jobs/{extract}")).json["nextRunAt"]
    started = await api.post(f"/v1/jobs/{extract}:run", {"payload": {"day": 1}})
    assert started.status == 201
    graph = (await api.get(f"/v1/runs/{started.json['runId']}/graph")).json
    assert graph["status"] == "pending"
    assert {node["name"]: node["state"] for node in graph["nodes"]} == {
        "extract": "ready", "check": "blocked", "load": "blocked"
    }  # fmt: skip
    assert len(graph["edges"]) == 3
    blocked = next(node for node in graph["nodes"] if node["name"] == "check")
    assert blocked["waitingFor"] == [started.json["runId"]]
    assert started.json["runId"] in (await api.get(f"/v1/runs/{blocked['runId']}")).json["waitingFor"]
    ended = await api.post(f"/v1/runs/{blocked['runId']}/graph:cancel")
    assert ended.json["counts"] == {"cancelled": 3}


async def test_a_patch_keeps_what_a_job_depends_on_and_null_takes_it_away(api: Caller):
    await api.post("/v1/jobs", job("a", **DAILY))
    child = (await api.post("/v1/jobs", job("b", "a"))).json
    changed = (await api("PATCH", f"/v1/jobs/{child['jobId']}", {"priority": "high"})).json
    assert changed["dependsOn"] == child["dependsOn"]
    freed = (await api("PATCH", f"/v1/jobs/{child['jobId']}", {"dependsOn": None})).json
    assert "dependsOn" not in freed
    assert freed["scheduleType"] == "on_demand"


async def test_a_schedule_that_repeats_what_the_graph_says_is_left_out(api: Caller):
    await api.post("/v1/jobs", job("a", **DAILY))
    child = (await api.post("/v1/jobs", job("b", "a", **DAILY))).json
    assert "cronExpression" not in child
    assert child["scheduleType"] == "recurring"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (job("b", "b"), 400, "b → b"),
        (job("b", "nobody"), 422, "there is no job 'nobody'"),
        (job("b", "job_0000000000000"), 422, "there is no job"),
        (job("b", "theirs"), 422, "there is no job 'theirs'"),
        (job("b", "a", "a"), 422, "stands there twice"),
        (job("b", {"job": "a", "when": "sometimes"}), 422, "sometimes"),
        (job("b", {"job": "a", "if": "done"}), 422, "if"),
        (job("b", 7), 422, "dependsOn"),
        (job("b", ""), 422, "dependsOn"),
        (job("b", "a", cronExpression="0 4 * * *"), 422, "schedule of its own"),
        (job("b", "a", scheduleAt="2030-01-01T00:00:00Z"), 422, "runs once"),
        (job("b", "gone"), 422, "is cancelled"),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_is_written(
    api: Caller, world: World, body: dict[str, Any], status: int, said: str
):
    await api.post("/v1/jobs", job("a", **DAILY))
    gone = (await api.post("/v1/jobs", job("gone", **DAILY))).json["jobId"]
    await api.post(f"/v1/jobs/{gone}:cancel")
    await world.job(tenant=await world.another_tenant(), key="theirs")
    before = await rows(world)
    answer = await api.post("/v1/jobs", body)
    assert answer.status == status
    assert said in answer.json["detail"]
    assert answer.json["hint"]
    assert await rows(world) == before


async def test_a_cycle_in_a_batch_is_named_and_a_run_in_no_graph_has_none(api: Caller, world: World):
    before = await rows(world)
    answer = await api.post("/v1/jobs:batch", {"jobs": [job("a", "c"), job("b", "a"), job("c", "b")]})
    assert answer.status == 400
    assert "a → b → c → a" in answer.json["detail"]
    assert await rows(world) == before
    run = (await api.post("/v1/runs", {"handler": "noop"})).json["runId"]
    assert (await api.get(f"/v1/runs/{run}/graph")).status == 404


async def test_a_call_that_others_stand_in_the_way_of_is_told_to_come_again(api: Caller, world: World):
    """A pause has the job and waits for its graph, which somebody holds who then wants the job."""
    made = await api.post("/v1/jobs:batch", {"jobs": [job("a", **DAILY), job("b", "a")]})
    top = made.json["jobIds"][0]
    await api.post(f"/v1/jobs/{top}:run")
    async with world.unfinished() as line:
        rival = await line.connection()
        await rival.execute("SET LOCAL deadlock_timeout = '1min'")  # so that it is the other one who gives way
        await rival.execute("SELECT FROM graph_run FOR UPDATE")
        pausing = asyncio.ensure_future(api.post(f"/v1/jobs/{top}:pause"))
        await world.until_waiting()
        await rival.execute("SELECT FROM job FOR UPDATE")
    answer = await pausing
    assert (answer.status, answer.json["type"], answer.headers["retry-after"]) == (
        503,
        "urn:foliot:problem:unavailable",
        "2",
    )
    assert (await api.get(f"/v1/jobs/{top}")).json["status"] == "pending"
    assert (await api.post(f"/v1/jobs/{top}:pause")).status == 200


def largest(edges: int) -> list[dict[str, Any]]:
    """A thousand jobs, each of which waits for the ten before it, and some for eleven."""
    parents = [min(number, 10) for number in range(MOST_NODES)]
    for number in range(11, 11 + edges - sum(parents)):
        parents[number] += 1
    return [
        job(f"n{number}", *(f"n{number - back}" for back in range(1, parents[number] + 1)))
        for number in range(MOST_NODES)
    ]


async def test_a_graph_of_a_thousand_jobs_and_ten_thousand_edges_is_made_started_and_read(api: Caller, world: World):
    before = await rows(world)
    many = await api.post("/v1/jobs:batch", {"jobs": largest(MOST_EDGES + 1)})
    assert (many.status, "10,001 edges" in many.json["detail"]) == (422, True)
    assert (await rows(world))["job"] == before["job"]
    made = await api.post("/v1/jobs:batch", {"jobs": largest(MOST_EDGES)})
    assert made.status == 201, made.json
    started = await api.post(f"/v1/jobs/{made.json['jobIds'][0]}:run")
    graph = (await api.get(f"/v1/runs/{started.json['runId']}/graph")).json
    assert graph["counts"] == {"blocked": MOST_NODES - 1, "ready": 1}
    assert (len(graph["nodes"]), len(graph["edges"])) == (MOST_NODES, MOST_EDGES)
    hand = await world.worker()
    (first,) = await hand.claim()
    assert await hand.settle([first]) == 1
    (second,) = await hand.claim()
    assert second.job != first.job
