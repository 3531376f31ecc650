"""Two at the same line at the same moment: whoever comes second waits or is looked after, and no wake-up is lost."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from burying import bury
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.tenants import Tenants
from foliot.store import fleet, letters
from foliot.store.admission import enter
from foliot.store.database import Connection
from foliot.store.jobs import draw_ids
from foliot.store.submission import NewRun, plan
from services.racing import control, done_or_waiting
from services.test_admission import left_behind, promote
from world import NOOP, World

LIMIT = 5
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
    deed.__name__: deed for deed in (Scene.admit, Scene.settle, Scene.cancel, Scene.reap, Scene.replay, Scene.pause)
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
