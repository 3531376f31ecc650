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
from foliot.domain.retry import Backoff
from foliot.store import fleet
from foliot.store.dispatch import Settlement
from foliot.worker.claimer import Claimer
from foliot.worker.executor import Assignment, Executor
from foliot.worker.lineup import Waiting
from foliot.worker.runner import Runner
from foliot.worker.settler import Settler
from foliot.worker.shares import Shares
from foliot.worker.starts import Starts
from worker.making import Gate, MemoryCarrier, claimed, eventually, function_spec
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


@pytest.mark.parametrize("mark", [-1, 1, 2])
async def test_a_marked_run_begins_when_the_database_knows_and_only_if_it_is_still_ours(mark: int):
    gate, carrier, ended = Gate(), MemoryCarrier(), list[Settlement]()
    runner = Runner(10, ended.append, lambda: 0.5)
    ours, theirs = claimed(deaths=mark), claimed(deaths=mark)
    carrier.lost.add(theirs.id)
    for run in (ours, theirs):
        runner.add([Waiting(run, function_spec(), "report", gate.executor)])
    assert await Starts(carrier, runner).run_once() == 2  # one statement for both
    await eventually(lambda: gate.begun)
    assert gate.begun == [ours.id]
    assert [each.run.id for each in ended] == [theirs.id]
    gate.opened.set()
    await eventually(lambda: len(ended) == 2)


@pytest.mark.parametrize(
    ("name", "mark", "expected"), [("mine", 1, "usual"), ("mine", 2, "alone"), ("theirs", 2, "usual")]
)
async def test_only_suspects_whose_handler_can_harm_a_worker_run_alone(name: str, mark: int, expected: str):
    ways: list[str] = []

    def executor(way: str) -> Executor:
        async def execute(_: Assignment) -> None:
            ways.append(way)

        return execute

    carrier = MemoryCarrier([claimed(deaths=mark)], function_spec(name))
    settler = Settler(carrier, lambda _: None)
    runner = Runner(10, settler.add, lambda: 0.5)
    shares, usual, alone = Shares({1: "default"}, {"default": 1}), executor("usual"), executor("alone")
    suspicious = lambda stored: alone if stored.spec.handler.label == "mine" else None  # noqa: E731
    assert await Claimer(carrier, shares, lambda _: usual, runner, settler, 10, suspicious).run_once() == 1
    await Starts(carrier, runner).run_once()
    await eventually(lambda: ways)
    assert ways == [expected]
