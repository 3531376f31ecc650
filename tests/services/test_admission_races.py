"""Two at the same line at the same moment: whoever comes second waits or is looked after, and no wake-up is lost."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from burying import DEAD, bury
from foliot.domain.limits import Concurrency
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.tenants import Tenants
from foliot.store import fleet, letters
from foliot.store.admission import enter
from foliot.store.database import Connection
from foliot.store.jobs import draw_ids
from foliot.store.stopping import stop
from foliot.store.submission import NewRun, plan
from services.racing import control, done_or_waiting
from services.test_admission import left_behind, promote
from world import NOOP, World

LIMIT = 6
FRAGILE = Spec(handler=FunctionHandler("fragile"), delivery="atMostOnce", max_retries=0)
IDLE = Spec(handler=FunctionHandler("idle"))


class Scene:
    """A tenant all of whose seats are held, three runs that wait for one, and every deed about to be done."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def set(self) -> None:
        world = self.world
        self.hand = await world.worker()
        (self.letter,) = await bury(world, worker=self.hand)
        await world.submit(2)
        self.taken = await self.hand.claim()
        dying = await world.worker("fragile")
        await world.submit(1, FRAGILE)
        await dying.note_started(await dying.claim())
        await dying.die()
        self.ended, self.stopped = await world.job_id(handler="idle", onDemand=True), await world.job_id(
            handler="idle", onDemand=True
        )  # fmt: skip
        for job in (self.ended, self.stopped):
            await world.submit(1, IDLE, job=job)
        (self.unwanted,) = await world.submit(1, IDLE)
        await world.submit(3)
        assert await self.held() == LIMIT

    async def held(self) -> int:
        return await self.world.value("SELECT count(*) FROM seat WHERE state = 2")

    async def admit(self, line: Connection) -> None:
        connection = await line.connection()
        spec = await self.world.specs.intern(self.world.tenant, NOOP)
        (run,) = await draw_ids(connection, 1)
        await plan(connection, [NewRun(spec, b"{}")], [run])
        await enter(connection, [run])

    async def settle(self, line: Connection) -> None:
        assert await self.hand.on(line).settle([self.taken.pop()]) == 1

    async def reap(self, line: Connection) -> None:
        await fleet.reap(line)

    async def replay(self, line: Connection) -> None:
        await letters.replay(await line.connection(), self.world.tenant, {self.letter: 1}, "by hand")

    async def cancel(self, line: Connection) -> None:
        await control(self.world, await line.connection()).cancel(self.world.tenant, self.ended)

    async def stop(self, line: Connection) -> None:
        """One run, not a job of which they all are."""
        await stop(await line.connection(), [self.unwanted], "not wanted")

    async def pause(self, line: Connection) -> None:
        await control(self.world, await line.connection()).pause(self.world.tenant, self.stopped)

    async def play_to_the_end(self) -> None:
        """Let everything run that is left, never more at once than may."""
        await self.world.resume(self.stopped)
        everybody = await self.world.worker("noop", "fragile", "idle")
        await self.hand.settle(self.taken)
        while await self.world.count("run"):
            await fleet.reap(self.hand.line)
            await promote(self.world)
            taken = await everybody.claim()
            assert 0 < len(taken) <= LIMIT
            assert await everybody.settle(taken) == len(taken)
        assert await self.world.count("seat") == await self.world.count("ready") == 0


DEEDS: dict[str, Callable[[Scene, Connection], Awaitable[None]]] = {
    deed.__name__: deed
    for deed in (Scene.admit, Scene.settle, Scene.cancel, Scene.stop, Scene.reap, Scene.replay, Scene.pause)
}


@pytest.mark.parametrize("first", DEEDS)
async def test_of_two_deeds_at_once_none_loses_a_wake_up(world: World, first: str, subtests: pytest.Subtests):
    await Tenants(world.database).set_limit("acme", LIMIT)
    for second, deed in DEEDS.items():
        with subtests.test(second):
            scene = Scene(world)
            await scene.set()

            async def later(deed: Callable[..., Awaitable[None]] = deed, scene: Scene = scene) -> None:
                async with world.unfinished() as line:
                    await deed(scene, line)

            async with world.unfinished() as line:
                await DEEDS[first](scene, line)
                rival = asyncio.create_task(later())
                await done_or_waiting(world, rival)
            await rival
            assert await scene.held() <= LIMIT
            assert await left_behind(world) == 0
            await promote(world)
            assert await scene.held() == LIMIT  # as many as wait, and more, so no seat stays empty
            await scene.play_to_the_end()


ONE = Spec(handler=FunctionHandler("noop"), concurrency=Concurrency(1), max_retries=0)


class Line:
    """A key of which one may go, and is in a worker's hands; two that wait behind it; and every deed to come."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def set(self, lost: bool) -> None:
        self.hand = await self.world.worker()
        spec = await self.world.specs.intern(self.world.tenant, ONE)
        self.new = NewRun(spec, b"{}", limit_key=7)
        (self.letter,) = (await self.world.submitter.submit([self.new])).ids
        assert await self.hand.conclude(await self.hand.claim(), DEAD) == 1
        self.ids = list((await self.world.submitter.submit([self.new] * 3)).ids)
        (self.going,) = await self.hand.claim()
        if lost:
            await self.hand.note_started([self.going])
            await self.hand.die()

    async def admit(self, line: Connection) -> None:
        connection = await line.connection()
        (run,) = await draw_ids(connection, 1)
        await plan(connection, [self.new], [run])
        await enter(connection, [run])

    async def settle(self, line: Connection) -> None:
        assert await self.hand.on(line).settle([self.going]) in (0, 1)

    async def stop(self, line: Connection) -> None:
        await stop(await line.connection(), [self.ids[1]], "not wanted")

    async def reap(self, line: Connection) -> None:
        await fleet.reap(line)

    async def replay(self, line: Connection) -> None:
        await letters.replay(await line.connection(), self.world.tenant, {self.letter: 1}, "by hand")

    async def play_to_the_end(self) -> list[int]:
        """One by one; who came in which order."""
        came: list[int] = []
        hand = await self.world.worker()
        await self.hand.settle([self.going])
        while await self.world.count("run"):
            await promote(self.world)
            taken = await hand.claim()
            assert len(taken) == 1
            assert await hand.settle(taken) == 1
            came.append(taken[0].id)
        assert await self.world.count("seat") == await self.world.count("ready") == 0
        return came


AT_A_LINE: dict[str, Callable[[Line, Connection], Awaitable[None]]] = {
    deed.__name__: deed for deed in (Line.admit, Line.settle, Line.stop, Line.reap, Line.replay)
}


@pytest.mark.parametrize("first", AT_A_LINE)
async def test_of_two_deeds_at_a_line_for_one_neither_lets_two_go_nor_changes_the_order(
    world: World, first: str, subtests: pytest.Subtests
):
    for second, deed in AT_A_LINE.items():
        with subtests.test(second):
            scene = Line(world)
            await scene.set(lost="reap" in (first, second))

            async def later(deed: Callable[..., Awaitable[None]] = deed, scene: Line = scene) -> None:
                async with world.unfinished() as line:
                    await deed(scene, line)

            async with world.unfinished() as line:
                await AT_A_LINE[first](scene, line)
                rival = asyncio.create_task(later())
                await done_or_waiting(world, rival)
            await rival
            assert await world.value("SELECT count(*) FROM seat WHERE state = 2") <= 1
            assert await left_behind(world) == 0
            came = [run for run in await scene.play_to_the_end() if run in scene.ids]
            assert came == sorted(came)
            if "replay" not in (first, second):
                assert await world.value("DELETE FROM dead_letter WHERE id > 0 RETURNING 1") == 1


async def test_a_seat_that_is_freed_while_another_run_comes_in_is_not_forgotten(world: World):
    """The newcomer finds the line locked, leaves word, and is looked after by whoever promotes."""
    await Tenants(world.database).set_limit("acme", 1)
    hand = await world.worker()
    await world.submit(1)
    taken = await hand.claim()
    async with world.unfinished() as line:
        await hand.on(line).settle(taken)
        (run,) = await world.submit(1)
        assert await world.value("SELECT state FROM run WHERE id = $1", run) == 2
    assert await world.count("ready") == 0
    assert await world.count("knock") == 1
    assert await left_behind(world) == 0
    await promote(world)
    assert [each.id for each in await hand.claim()] == [run]
