"""`foliot run …`"""

import json
from pathlib import Path
from typing import Any

from cli.conftest import Shell
from sdk.serving import Served
from worker.crew import Crew
from world import World


async def noop(ctx: Any, payload: Any) -> None:
    if payload == "fail":
        raise ValueError("first line\nsecond line \x1b[31mred")


async def test_runs_are_listed_and_shown_with_their_attempts(shell: Shell, foliot: Served, crew: Crew, world: World):
    assert "no runs yet" in await shell("run", "list")
    async with foliot.aio() as client, crew.work({"noop": noop}):
        good = await (await client.submit("noop")).wait(10)
        bad = await (await client.submit("noop", "fail", max_retries=0)).wait(10, check=False)
    runs = await shell.json("run", "list")
    assert [run["runId"] for run in runs] == [bad.id, good.id]
    assert [run["runId"] for run in await shell.json("run", "list", "--status", "completed")] == [good.id]
    assert "no such runs" in await shell("run", "list", "--status", "cancelled")
    for words in (("--state", "dead"), ("--text", "first line"), ("--text", "first", "--since", runs[1]["createdAt"])):
        assert [run["runId"] for run in await shell.json("run", "list", *words)] == [bad.id]
    assert await shell.json("run", "list", "--until", "2026-01-01T00:00:00Z") == []
    assert "the newest 1; --limit" in await shell("run", "list", "--limit", "1")
    shown = await shell.json("run", "get", bad.id)
    assert shown["status"] == "failed"
    assert [each["status"] for each in shown["executions"]] == ["failed"]
    said = await shell("run", "get", bad.id)
    assert "ValueError: first line" in said
    assert "\x1b" not in said
    assert "TRY  STATUS" in said


async def test_a_run_is_submitted_and_seen_to_its_end(shell: Shell, crew: Crew):
    async with crew.work({"noop": noop}):
        assert "completed" in await shell("run", "submit", "noop", "--payload", '{"order": 17}', "--wait")
        failed = await shell.json(
            "run", "submit", "noop", "--payload", '"fail"', "--max-retries", "0", "--wait", code=1
        )
    assert (failed["status"], failed["errorClass"]) == ("failed", "ValueError")


async def test_a_run_is_submitted_for_later_and_once(shell: Shell):
    said = await shell("run", "submit", "noop", "--delay", "PT1H", "--idempotency-key", "receipt-17")
    (run,) = await shell.json("run", "list", "--state", "scheduled")
    assert said == f"{run['runId']} pending; watch it with: foliot run get {run['runId']}\n"
    assert await shell("run", "submit", "noop", "--delay", "PT1H", "--idempotency-key", "receipt-17") == said
    later = (await shell.json("run", "submit", "noop", "--at", "2030-01-01T09:00:00Z", "--queue", "reports"))["runId"]
    assert (await shell.json("run", "get", later))["scheduledAt"] == "2030-01-01T09:00:00Z"
    assert "--at: has no offset" in await shell("run", "submit", "noop", "--at", "2030-01-01T09:00:00", code=1)


async def test_many_runs_are_submitted_from_a_file_and_again_after_a_break_none_is_twice(
    shell: Shell, world: World, tmp_path: Path
):
    lines = [
        {"handler": "noop", "payload": {"n": 1}, "maxRetries": 7},
        {"payload": None, "runAt": "2030-01-01T00:00:00Z"},
    ]
    file = tmp_path / "runs.jsonl"
    file.write_text("\n".join([*map(json.dumps, lines), ""] + ['{"delay": 60}'] * 1_500))
    words = ("run", "submit", "usual", "--file", str(file), "--queue", "reports", "--idempotency-key", "import")
    made = (await shell.json(*words))["runIds"]
    assert len(set(made)) == 1_502
    assert (await shell.json(*words))["runIds"] == made
    assert "1,502 runs accepted" in await shell(*words)
    assert await world.count("run") + await world.count("timer") == 1_502
    first, second, last = [await shell.json("run", "get", run) for run in (made[0], made[1], made[-1])]
    assert (first["handler"], second["handler"], last["handler"]) == ("noop", "usual", "usual")
    assert second["scheduledAt"] == "2030-01-01T00:00:00Z"
    assert {first["queue"], second["queue"], last["queue"]} == {"reports"}


async def test_a_line_that_is_no_run_is_named_and_nothing_is_submitted(shell: Shell, world: World, tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    for text, said in (
        ('{"handler": "noop"}\n[1]\n', "line 2: is no run"),
        ('{"payload": 1}', "line 1: has no handler"),
    ):
        file.write_text(text)
        assert said in await shell("run", "submit", "--file", str(file), code=1)
    assert "name a HANDLER" in await shell("run", "submit", code=2)
    assert await world.count("run") == 0


async def test_runs_of_one_job_are_found(shell: Shell):
    job = (await shell.json("job", "create", "report", "noop"))["jobId"]
    run = (await shell.json("job", "run", job))["runId"]
    await shell.json("job", "run", (await shell.json("job", "create", "other", "noop"))["jobId"])
    assert [each["runId"] for each in await shell.json("run", "list", "--job", job)] == [run]
    said = await shell("run", "get", run)
    assert "not tried yet" in said


async def test_mistakes_are_said_in_words(shell: Shell):
    assert "there is no such run" in await shell("run", "get", "run_0000000000000", code=1)
    assert "→ " in await shell("run", "list", "--status", "nonsense", code=1)
    assert "there is no job 'nonsense'\n  → name it by" in await shell("run", "list", "--job", "nonsense", code=1)


async def test_a_graph_is_drawn_with_what_failed_and_what_waits_for_it(
    shell: Shell, foliot: Served, crew: Crew, world: World
):
    async def extract(ctx: Any, payload: Any) -> None:
        raise ValueError("no such file")

    async with foliot.aio() as client, crew.work({"extract": extract, "noop": noop}):
        first = await client.create_job("extract", "extract", max_retries=0)
        second = await client.create_job("load", "noop", depends_on=[first])
        await client.create_job("alarm", "noop", depends_on=[{"job": first.id, "when": "failed"}, second])
        run = await (await client.run_job(first.id)).wait(10, check=False)
    said = await shell("run", "graph", run.id)
    assert said.splitlines()[0].startswith("failed: 2 blocked, 1 dead")
    assert "✗ extract  dead" in said
    assert "└─ · load  blocked" in said
    assert "waits for extract, which failed for good" in said
    assert (await shell.json("run", "graph", run.id, "--cancel"))["counts"] == {"cancelled": 2, "dead": 1}
    made = await shell.json("job", "create", "late", "noop", "--depends-on", f"{first.id}:done")
    assert made["dependsOn"] == [{"job": first.id, "when": "done"}]
