"""Several worker processes of one machine: kept, replaced, scaled, drained, stopped."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from faults.machine import until as patiently
from foliot.cli.shell import DRAINED
from foliot.cli.supervise import Team
from foliot.domain.scaling import DEEP, DEEP_FOR, IDLE_FOR, Bounds
from foliot.kit.signals import FLEET
from foliot.store.hints import notify
from foliot.store.recovery import Refused
from foliot.store.roster import Look
from kit.launching import PATHS
from worker.making import eventually, function_spec
from world import PATIENCE, World


class StandIn:
    """Stands for a child: it ends when told to, or when the test says so."""

    def __init__(self, place: int) -> None:
        self.pid = place
        self.is_retiring = False
        self.status = 0
        self.over = asyncio.Event()

    async def keep(self, stop: asyncio.Event) -> int:
        tasks = [asyncio.ensure_future(self.over.wait()), asyncio.ensure_future(stop.wait())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        return self.status

    def retire(self) -> None:
        self.is_retiring = True

    def end(self, status: int) -> None:
        self.status = status
        self.over.set()


class Place:
    """A team of stand-ins with a clock of its own; what a look finds is what the test says."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.now = 0.0
        self.found: Look | Exception = Look(0, 0)
        self.made: list[StandIn] = []
        self.team = Team(self._make, self.stop, lambda: self.now)

    def _make(self, place: int) -> StandIn:
        self.made.append(StandIn(place))
        return self.made[-1]

    async def looking(self, pids: Sequence[int]) -> Look:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    async def pass_time(self, bounds: Bounds, seconds: float) -> None:
        for _ in range(int(seconds // 5) + 1):
            self.now += 5
            await self.team.look(bounds, self.looking)


@pytest.fixture
def place() -> Place:
    return Place()


async def test_a_backlog_brings_processes_and_idleness_retires_them_the_last_first(place: Place):
    bounds = Bounds(1, 4)
    running = asyncio.ensure_future(place.team.run(bounds))
    await eventually(lambda: place.team.size == 1)
    place.found = Look(1, DEEP + 1)
    await place.pass_time(bounds, DEEP_FOR)
    assert [each.pid for each in place.made] == [1, 2]
    await place.pass_time(bounds, DEEP_FOR)
    assert place.team.size == 4
    place.found = Look(1, 0)
    await place.pass_time(bounds, IDLE_FOR)
    assert [each.is_retiring for each in place.made] == [False, False, False, True]
    place.found = Look(3, DEEP + 1)
    await place.pass_time(bounds, DEEP_FOR)
    assert place.team.size == 4  # besides the one that still finishes what it runs
    assert place.made[-1].pid == 5
    place.stop.set()
    await asyncio.wait_for(running, PATIENCE)
    assert place.team.unfinished == 0


async def test_who_is_not_told_what_waits_keeps_what_there_is_and_says_so_once(place: Place):
    bounds = Bounds(1, 4)
    running = asyncio.ensure_future(place.team.run(bounds))
    await eventually(lambda: place.team.size == 1)
    place.found = Refused("the key was revoked", "make another")
    with capture_logs() as said:
        await place.pass_time(bounds, 10 * DEEP_FOR)
    assert ["the key was revoked" in each["error"] for each in said] == [True]
    place.found = Look(1, DEEP + 1)
    await place.pass_time(bounds, DEEP_FOR)
    assert place.team.size == 2
    place.stop.set()
    await asyncio.wait_for(running, PATIENCE)


async def test_a_place_whose_worker_was_drained_stays_empty_and_without_places_all_is_over(place: Place):
    bounds = Bounds(2, 3)
    running = asyncio.ensure_future(place.team.run(bounds))
    await eventually(lambda: place.team.size == 2)
    place.made[0].end(DRAINED)
    await eventually(lambda: place.team.size == 1)
    place.found = Look(1, DEEP + 1)
    await place.pass_time(bounds, 10 * DEEP_FOR)
    assert place.team.size == 2  # of three places one was given up
    for each in place.made[1:]:
        each.end(DRAINED)
    await asyncio.wait_for(running, PATIENCE)
    assert not place.stop.is_set()


async def test_who_does_not_end_in_good_order_when_told_to_is_counted(place: Place):
    running = asyncio.ensure_future(place.team.run(Bounds(3, 3)))
    await eventually(lambda: place.team.size == 3)
    for each, status in zip(place.made, (0, -9, 1), strict=True):
        each.status = status
    place.stop.set()
    await asyncio.wait_for(running, PATIENCE)
    assert place.team.unfinished == 2


APP = """
import asyncio, os, pathlib
from foliot import Worker

worker = Worker(concurrency=1)

@worker.task
async def hold(ctx, payload):
    with open("begun", "a") as file:
        file.write(f"{os.getpid()}\\n")
    while not pathlib.Path("may_end").exists():
        await asyncio.sleep(0.02)
"""


async def test_processes_are_replaced_when_killed_left_when_drained_and_finish_when_stopped(
    world: World, dsn: str, folder: Path
):
    (folder / "held.py").write_text(APP)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "foliot", "worker", "held:worker", "--processes", "2"),
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(map(str, PATHS)), "FOLIOT_DATABASE_URL": dsn},
        stderr=asyncio.subprocess.PIPE,
    )

    async def until(query: str) -> None:
        await patiently(lambda: world.value(query), 40, query)  # processes take their time to start on a busy machine

    try:
        await until("SELECT count(*) = 2 FROM worker WHERE app = 'held:worker' AND concurrency = 1")
        (killed, drained) = [row["pid"] for row in await world.sql("SELECT pid FROM worker ORDER BY pid")]
        os.kill(killed, signal.SIGKILL)
        await until("SELECT count(*) = 3 FROM worker")
        await world.fleet.drain(await world.value("SELECT id FROM worker WHERE pid = $1", drained))
        line = world.database.line(hot=False)
        await notify(line, [FLEET])
        await line.close()
        await until(f"SELECT state = 2 FROM worker WHERE pid = {drained}")
        await world.submit(4, function_spec("hold"))
        await patiently((folder / "begun").exists, 40, "the first handler")
        process.send_signal(signal.SIGTERM)
        await until("SELECT count(*) = 1 FROM claim")
        (folder / "may_end").touch()
        _, said = await asyncio.wait_for(process.communicate(), 40)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode()
    assert "a process ended; starting it again  which=worker" in said.decode()
    assert said.decode().count("a process was drained and is not started again") == 1
    assert await world.count("worker") == 3
    begun = len((folder / "begun").read_text().split())
    assert await world.value("SELECT count(*) FROM history WHERE state = 4") == begun
    assert await world.count("ready") == 4 - begun
    assert await world.count("claim") == 0
