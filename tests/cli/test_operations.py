"""`foliot job backfill` and `foliot operation …`"""

import re

import pytest

from cli.conftest import Shell
from foliot.cli import operations
from operating import served_operations
from worker.crew import Crew, noop
from world import World

JANUARY = ("--from", "2026-01-01T00:00:00Z", "--until", "2026-01-10T00:00:00Z")


@pytest.fixture
async def job(shell: Shell) -> str:
    return (await shell.json("job", "create", "nightly", "noop", "--every", "PT24H"))["jobId"]


async def test_a_dry_run_shows_the_ends_of_what_would_be_run(shell: Shell, job: str):
    said = await shell("job", "backfill", job, *JANUARY, "--dry-run")
    assert said.splitlines()[0] == "10 of 10 instants would be run; nothing was written"
    assert said.splitlines()[1] == "  2026-01-01 00:00:00 UTC"
    assert said.splitlines()[-1] == "  2026-01-10 00:00:00 UTC"
    assert "…" not in said
    longer = await shell("job", "backfill", job, "--from", "2025-12-01T00:00:00Z", *JANUARY[2:], "--dry-run")
    assert "  …\n" in longer
    assert (await shell.json("job", "backfill", job, *JANUARY, "--dry-run"))["plan"]["toRun"] == 10
    assert "no operations yet" in await shell("operation", "list")


async def test_a_backfill_is_begun_looked_at_and_cancelled(shell: Shell, job: str):
    said = await shell("job", "backfill", job, *JANUARY, "--name", "mend january", "--concurrency", "4")
    operation = re.search(r"op_\w{13}", said)[0]
    assert f"{operation} pending: 0/10, 0 failed" in said
    assert f"foliot operation cancel {operation}" in said
    assert "mend january" in await shell("operation", "list")
    assert "no such operations" in await shell("operation", "list", "--status", "completed")
    assert [each["operationId"] for each in await shell.json("operation", "list", "--job", job)] == [operation]
    shown = await shell("operation", "get", operation)
    assert re.search(r"^concurrency +4$", shown, re.MULTILINE)
    assert re.search(r"^total +10$", shown, re.MULTILINE)
    assert (await shell.json("operation", "cancel", operation))["status"] == "cancelled"
    said = await shell("operation", "get", "op_nonsense", code=1)
    assert "there is no such operation" in said
    said = await shell("job", "backfill", job, "--from", "2026-01-01", *JANUARY[2:], code=1)
    assert "from: " in said


@pytest.mark.parametrize(("payload", "code", "status"), [("1", 0, "completed"), ('"fail"', 1, "failed")])
async def test_waiting_for_the_end_tells_how_it_went(
    shell: Shell, world: World, crew: Crew, payload: str, code: int, status: str
):
    words = ("--every", "PT24H", "--payload", payload, "--max-retries", "0")
    job = (await shell.json("job", "create", "nightly", "noop", *words))["jobId"]
    async with served_operations(world), crew.work({"noop": noop}):
        said = await shell("job", "backfill", job, *JANUARY, "--concurrency", "5", "--wait", code=code)
    assert f"{status}: 10/10, {0 if code == 0 else 10} failed" in said


async def test_who_stops_watching_does_not_stop_the_backfill(shell: Shell, job: str, monkeypatch):
    def impatient(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(operations, "sleep", impatient)
    said = await shell("job", "backfill", job, *JANUARY, "--wait", code=1)
    assert "goes on" in said
    assert "foliot operation cancel op_" in said
    assert (await shell.json("operation", "list"))[0]["status"] == "pending"
