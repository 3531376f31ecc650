"""A job of which one may go at a time is cancelled or paused just when something else happens to its line."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from burying import DEAD
from foliot.store import fleet
from foliot.store.admission import enter
from foliot.store.database import Connection
from foliot.store.jobs import draw_ids
from foliot.store.submission import NewRun, hold_open, plan
from services.racing import control, done_or_waiting
from services.test_admission import left_behind, promote
from services.test_admission_races import AT_A_LINE, ONE, Line
from world import World


class JobLine(Line):
    """A job whose only place is in a worker's hands; two of its runs wait for it, one is a dead letter."""

    async def set(self, lost: bool) -> None:
        world = self.world
        self.hand = await world.worker()
        self.job = await world.job_id(onDemand=True, concurrency={"limit": 1}, maxRetries=0)
        (self.letter,) = await world.submit(1, ONE, job=self.job)
        assert await self.hand.conclude(await self.hand.claim(), DEAD) == 1
        self.ids = await world.submit(3, ONE, job=self.job)
        (self.going,) = await self.hand.claim()
        if lost:
            await self.hand.note_started([self.going])
            await self.hand.die()

    async def admit(self, line: Connection) -> None:
        """As whoever runs a job by hand: not if its gate is closed, which stays as it is until that is done."""
        connection = await line.connection()
        if not await hold_open(connection, [self.job]):
            return
        spec = await self.world.specs.intern(self.world.tenant, ONE)
        (run,) = await draw_ids(connection, 1)
        await plan(connection, [NewRun(spec, b"{}", job=self.job)], [run])
        await enter(connection, [run])
        self.ids.append(run)

    async def cancel(self, line: Connection) -> None:
        await control(self.world, await line.connection()).cancel(self.world.tenant, self.job)

    async def pause(self, line: Connection) -> None:
        await control(self.world, await line.connection()).pause(self.world.tenant, self.job)

    async def begun(self) -> list[int]:
        """What begins of it, one by one, until nothing does."""
        came: list[int] = []
        hand = await self.world.worker()
        await self.hand.settle([self.going])
        await fleet.reap(hand.line)
        while True:
            await promote(self.world)
            taken = await hand.claim()
            assert len(taken) <= 1
            if not taken:
                return came
            assert await hand.settle(taken) == 1
            came.append(taken[0].id)


DEEDS: Final[dict[str, Callable[[JobLine, Connection], Awaitable[None]]]] = {
    deed.__name__: deed for deed in (*AT_A_LINE.values(), JobLine.admit, JobLine.cancel, JobLine.pause)
}
GATES: Final = ("cancel", "pause")
PAIRS: Final = [(first, second) for first in DEEDS for second in DEEDS if {first, second} & {*GATES}]


async def race(world: World, first: str, second: str) -> JobLine:
    scene = JobLine(world)
    await scene.set(lost="reap" in {first, second})

    async def later() -> None:
        async with world.unfinished() as line:
            await DEEDS[second](scene, line)

    async with world.unfinished() as line:
        await DEEDS[first](scene, line)
        rival = asyncio.create_task(later())
        await done_or_waiting(world, rival)
    await asyncio.gather(rival, return_exceptions={first, second} == {*GATES})  # a job that is over cannot be paused
    return scene


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_nothing_begins_behind_a_gate_that_closed_at_that_moment_and_nobody_is_forgotten(
    world: World, first: str, second: str
):
    scene = await race(world, first, second)
    assert await world.value("SELECT count(*) FROM seat WHERE state = 2") <= 1
    assert await left_behind(world) == 0
    assert await scene.begun() == []
    if "cancel" in {first, second}:
        assert await world.count("run") == 0
    else:
        await world.resume(scene.job)
        came = await scene.begun()
        assert [run for run in came if run in scene.ids] == sorted(set(came) & set(scene.ids))
        waiting = {*scene.ids[1:]} - ({scene.ids[1]} if "stop" in {first, second} else set())
        assert waiting <= set(came)
        assert (scene.letter in came) is ("replay" in {first, second})
    assert await world.count("run") == await world.count("seat") == await world.count("ready") == 0
