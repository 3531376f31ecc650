"""Runs that kill their worker: found out, run alone, quarantined; whoever was beside them ends well."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import foliot
from foliot.domain.outcome import Failure
from foliot.domain.retry import Backoff
from foliot.store import fleet
from foliot.worker.executor import Assignment
from foliot.worker.wary import Wary
from worker.making import PATIENCE, assignment, claimed, event, eventually, function_spec
from world import World

AT_ONCE = Backoff(initial=timedelta(0), max=timedelta(0))
INNOCENT = 6


@contextmanager
def worker(dsn: str) -> "Iterator[subprocess.Popen[bytes]]":
    paths = [str(Path(__file__).parents[1]), str(Path(foliot.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": ":".join(paths), "FOLIOT_DATABASE_URL": dsn}
    command = [sys.executable, "-m", "foliot", "worker", "worker.captive:worker"]
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.mark.timeout(120)  # half a dozen processes, one after the other
async def test_a_run_that_kills_its_worker_at_once_is_quarantined_and_all_beside_it_complete(world: World, dsn: str):
    """In less than a millisecond, so that nobody can have noted that it began."""
    innocent = await world.submit(INNOCENT, function_spec("quick"))
    (poison,) = await world.submit(1, function_spec("poison", backoff=AT_ONCE, max_retries=100))
    innocent += await world.submit(INNOCENT, function_spec("slow"))
    fallen, deadline = 0, time.monotonic() + 100
    while await world.count("run"):
        with worker(dsn) as process:
            while process.poll() is None and await world.count("run"):
                assert time.monotonic() < deadline
                await world.promoter.run_once()
                await asyncio.sleep(0.02)
            fallen += process.poll() is not None
        await world.sql("UPDATE worker SET state = 2")  # its lease would have ended
        await fleet.reap(world.promoter._line)
    assert 1 < fallen <= 3
    (letter,) = await world.sql("SELECT id, error FROM dead_letter")
    assert letter["id"] == poison
    assert letter["error"].startswith("quarantined: it killed its process 3 times while running alone")
    assert "SIGKILL" in letter["error"]
    assert {row["run"] for row in await world.sql("SELECT run FROM history WHERE state = 4")} == set(innocent)


async def test_marked_runs_are_noted_before_they_begin_and_together():
    told: list[list[int]] = []
    may_go, begun = asyncio.Event(), []

    async def note(batch: list) -> None:
        told.append([run.id for run, _ in batch])
        await may_go.wait()

    async def run(assignment: Assignment) -> Failure | None:
        begun.append(assignment.run.id)
        return None

    wary = Wary(note, lambda _: None)
    runs = [claimed(deaths=-1) for _ in range(5)]
    going = []
    for each in runs:
        executor, is_alone = wary.executor(each, function_spec(), run)
        assert not is_alone
        going.append(asyncio.ensure_future(executor(assignment()._replace(run=each))))
    await eventually(lambda: told)
    assert begun == []
    may_go.set()
    await asyncio.gather(*going)
    assert len(begun) == 5
    assert told == [[run.id for run in runs]] or told == [[runs[0].id], [run.id for run in runs[1:]]]


async def test_a_note_that_was_cut_short_is_written_by_the_next_of_its_batch():
    told: list[int] = []
    may_go, entered = asyncio.Event(), asyncio.Event()

    async def note(batch: list) -> None:
        told.append(len(batch))
        if len(told) == 1:
            await may_go.wait()
        elif len(told) == 2:
            entered.set()
            await asyncio.Event().wait()

    async def run(_: Assignment) -> Failure | None:
        return None

    wary = Wary(note, lambda _: None)
    executor, _ = wary.executor(claimed(deaths=1), function_spec(), run)
    first, second, third = (asyncio.ensure_future(executor(assignment())) for _ in range(3))
    await asyncio.sleep(0)
    may_go.set()
    await event(entered)
    second.cancel()
    assert await asyncio.wait_for(asyncio.gather(first, third), PATIENCE) == [None, None]
    assert told == [1, 2, 2]


async def test_only_suspects_whose_handler_can_harm_a_worker_run_alone():
    async def usual(_: Assignment) -> Failure | None:
        return Failure("usual")

    async def alone(_: Assignment) -> Failure | None:
        return Failure("alone")

    async def note(_: list) -> None:
        pass

    wary = Wary(note, lambda spec: alone if spec.handler.label == "mine" else None)
    for name, mark, expected in (("mine", 1, "usual"), ("mine", 2, "alone"), ("theirs", 2, "usual")):
        executor, is_alone = wary.executor(claimed(deaths=mark), function_spec(name), usual)
        assert (await executor(assignment())).error == expected
        assert is_alone == (expected == "alone")
