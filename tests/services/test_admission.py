"""Limits: never more at once than agreed, in order where that is one, and nobody left behind."""

import asyncio
import os
import random
from collections import Counter, defaultdict, deque
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.limits import Concurrency
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.spec import FunctionHandler, Spec
from foliot.kit import telemetry
from foliot.services.reap import Reaper
from foliot.services.sweep import Sweeper
from foliot.services.tenants import Tenants
from foliot.store.dispatch import Claimed
from foliot.store.submission import NewRun
from services.racing import control
from world import Hand, World

SOON = timedelta(milliseconds=1)
AGAIN = Outcome.again(Ending.FAILED, "boom", SOON)
DEAD = Outcome.dead(Ending.FAILED, "boom")
KEYS = 4


def limited(limit: int, name: str = "noop", **fields: Any) -> Spec:
    return Spec(handler=FunctionHandler(name), concurrency=Concurrency(limit), **fields)


async def left_behind(world: World) -> int:
    """How much the sweeper finds that nobody has seen to."""
    sweeper = Sweeper(world.database)
    found = await sweeper.run_once()
    await sweeper.close()
    return found


async def promote(world: World) -> None:
    while await world.promoter.run_once():
        pass


class Walk:
    """A random walk over everything that can happen to runs under limits, with what must hold after every step."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.dice = random.Random(seed)
        self.limits = {key: self.dice.choice([1, 1, 2, 3]) for key in range(KEYS)}
        self.allowed = dict(self.limits)
        """What may go after a limit was lowered: as many as went then, and fewer as they end."""
        self.strict = {key for key in range(KEYS) if self.limits[key] == 1}
        """Limits of 1 that were never another."""
        self.whole = self.dice.choice([None, 2, 5])
        self.jobs: dict[int, int] = {}
        """The others are under the limit of a value in their payload."""
        self.hands: list[Hand] = []
        self.held: dict[int, list[Claimed]] = defaultdict(list)
        self.key: dict[int, int] = {}
        self.submitted: dict[int, list[int]] = defaultdict(list)
        self.ended: dict[int, list[int]] = defaultdict(list)
        self.dead: list[int] = []
        self.cancelled: set[int] = set()
        self.replayed: set[int] = set()
        self.paused: set[int] = set()
        self.reaper = Reaper(world.database, timedelta(seconds=60))
        self.sweeper = Sweeper(world.database)

    async def begin(self) -> None:
        await Tenants(self.world.database).set_limit("acme", self.whole)
        for key in range(0, KEYS, 2):
            fields = {"onDemand": True, "concurrency": {"limit": self.limits[key]}}
            self.jobs[key] = await self.world.job_id(**fields)

    async def step(self) -> None:
        deeds = {
            self.submit: 30, self.claim: 30, self.succeed: 30, self.retry: 10, self.release: 10, self.promote: 10,
            self.die: 3, self.fail: 3, self.replay: 3, self.pause: 3, self.resume: 3, self.cancel: 5, self.relimit: 3,
        }  # fmt: skip
        (deed,) = self.dice.choices(list(deeds), list(deeds.values()))
        await deed()
        await self.check()

    async def submit(self) -> None:
        key = self.dice.randrange(KEYS)
        if key in self.paused:
            return
        spec = await self.world.specs.intern(self.world.tenant, limited(self.limits[key]))
        # What comes later joins its line when its time comes: where order is strict, all come at once.
        delay = self.dice.choice([None, SOON]) if self.limits[key] > 1 else None
        of = {"job": self.jobs[key]} if key in self.jobs else {"limit_key": key}
        run = NewRun(spec, b"{}", delay=delay, **of)
        for id_ in (await self.world.submitter.submit([run] * self.dice.randint(1, 4))).ids:
            self.key[id_] = key
            self.submitted[key].append(id_)

    async def claim(self) -> None:
        if not self.hands or self.dice.random() < 0.1:
            self.hands.append(await self.world.worker())
        hand = self.dice.choice(self.hands)
        self.held[hand.id] += await hand.claim(self.dice.randint(1, 6))

    def some_held(self) -> tuple[Hand, list[Claimed]]:
        busy = [hand for hand in self.hands if self.held[hand.id]]
        if not busy:
            return None, []  # type: ignore[return-value]
        hand = self.dice.choice(busy)
        chosen = self.dice.sample(self.held[hand.id], self.dice.randint(1, len(self.held[hand.id])))
        self.held[hand.id] = [run for run in self.held[hand.id] if run not in chosen]
        return hand, chosen

    async def succeed(self) -> None:
        hand, runs = self.some_held()
        if runs:
            assert await hand.settle(runs) == len(runs)
            for run in runs:
                self.ended[self.key[run.id]].append(run.id)

    async def conclude(self, outcome: Outcome) -> list[Claimed]:
        hand, runs = self.some_held()
        if runs:
            assert await hand.conclude(runs, outcome) == len(runs)
        return runs

    async def retry(self) -> None:
        await self.conclude(self.dice.choice([AGAIN, Outcome.snoozed(SOON, "later")]))

    async def release(self) -> None:
        await self.conclude(Outcome.released())

    async def fail(self) -> None:
        self.dead += [run.id for run in await self.conclude(DEAD)]
        self.replayed.update(self.dead)

    async def replay(self) -> None:
        self.dead, runs = [], self.dead
        if runs:
            await self.world.dead_letters.replay(self.world.tenant, runs)

    async def cancel(self) -> None:
        """Some run that no worker holds: it ends at once, and whoever stands behind it moves up."""
        held = {run.id for runs in self.held.values() for run in runs}
        rows = await self.world.sql("SELECT id FROM run WHERE id > 0 ORDER BY id")
        if waiting := [row["id"] for row in rows if row["id"] not in held]:
            run = self.dice.choice(waiting)
            await self.world.canceller.cancel(self.world.tenant, run)
            self.cancelled.add(run)

    async def relimit(self) -> None:
        key = self.dice.choice(list(self.jobs))
        self.limits[key] = self.dice.choice([1, 2, 3])
        self.allowed[key] = max(self.allowed[key], self.limits[key])
        self.strict.discard(key)
        await self.world.change(self.jobs[key], concurrency={"limit": self.limits[key]})

    async def pause(self) -> None:
        key = self.dice.choice(list(self.jobs))
        self.paused.add(key)
        await self.world.control.pause(self.world.tenant, self.jobs[key])

    async def resume(self) -> None:
        for key in self.paused:
            await self.world.resume(self.jobs[key])
        self.paused.clear()

    async def promote(self) -> None:
        await promote(self.world)

    async def die(self) -> None:
        if self.hands:
            hand = self.hands.pop(self.dice.randrange(len(self.hands)))
            await hand.die()
            self.held.pop(hand.id, None)
            while await self.reaper.run_once():
                pass

    async def check(self) -> None:
        """Counted anew from what the workers hold, and from what they may take."""
        rows = await self.world.sql("SELECT id FROM run WHERE id > 0 AND state = 1")
        going = Counter(self.key[row["id"]] for row in rows)
        assert {self.key[run.id] for runs in self.held.values() for run in runs} <= going.keys()
        assert all(count <= self.allowed[key] for key, count in going.items())
        self.allowed = {key: max(limit, min(self.allowed[key], going[key])) for key, limit in self.limits.items()}
        assert self.whole is None or going.total() <= self.whole
        assert await self.sweeper.run_once() == 0

    async def finish(self) -> None:
        await self.resume()
        for _ in range(10_000):
            await self.replay()
            await self.promote()
            await self.claim()
            await self.succeed()
            await self.check()
            if not await self.world.count("run") and not self.dead:
                break
        assert await self.world.count("run") == await self.world.count("seat") == 0
        for key, ended in self.ended.items():
            submitted = [run for run in self.submitted[key] if run not in self.cancelled]
            assert sorted(ended) == sorted(submitted)
            in_order = [run for run in submitted if run not in self.replayed]
            assert key not in self.strict or [run for run in ended if run not in self.replayed] == in_order
        await self.reaper.close()
        await self.sweeper.close()


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_limits_hold_and_nobody_is_left_behind(world: World, seed: int):
    walk = Walk(world, seed)
    await walk.begin()
    for _ in range(100):
        await walk.step()
    await walk.finish()


async def test_of_many_keys_each_goes_one_by_one_in_order_whatever_ends_first(world: World):
    """`FOLIOT_TEST_KEYS=100000` asks for as many as the bench."""
    keys, dice = int(os.environ.get("FOLIOT_TEST_KEYS", "300")), random.Random(7)
    spec = await world.specs.intern(world.tenant, limited(1))
    coming = [key for key in range(keys) for _ in range(3)]
    dice.shuffle(coming)
    line: dict[int, deque[int]] = defaultdict(deque)
    key_of: dict[int, int] = {}
    hands, held = [await world.worker() for _ in range(3)], defaultdict[int, list[Claimed]](list)
    while coming or key_of:
        if coming:
            some, coming = coming[:2_000], coming[2_000:]
            accepted = await world.submitter.submit([NewRun(spec, b"{}", limit_key=key) for key in some])
            for id_, key in zip(accepted.ids, some, strict=True):
                line[key].append(id_)
                key_of[id_] = key
        for hand in hands:
            taken = await hand.claim(800)
            assert all(line[key_of[run.id]][0] == run.id for run in taken)  # the first that is left
            held[hand.id] += taken
            dice.shuffle(held[hand.id])
            ended = [held[hand.id].pop() for _ in range(dice.randint(0, len(held[hand.id])))]
            assert await hand.settle(ended) == len(ended)
            for run in ended:
                assert line[key_of.pop(run.id)].popleft() == run.id
        await promote(world)
    assert await world.count("run") == await world.count("seat") == await left_behind(world) == 0


async def test_a_wake_up_that_was_lost_is_found_and_counted(world: World):
    """Planted: somebody frees a seat and tells nobody."""
    first, _ = await world.submit(2, limited(1))
    await world.sql("DELETE FROM foliot.ready WHERE run = $1", first)
    await world.sql("DELETE FROM foliot.run WHERE id = $1", first)
    assert await left_behind(world) == 1  # its seat
    assert await world.count("ready") == 1
    assert await left_behind(world) == 0
    await world.sql("UPDATE foliot.run SET state = 2 WHERE id > 0")
    await world.sql("DELETE FROM foliot.ready WHERE lane > 0")
    assert await left_behind(world) == 1  # blocked, though it holds its seat
    await promote(world)
    assert await world.count("ready") == 1
    (second,) = await world.submit(1, limited(1))
    await world.sql("DELETE FROM foliot.seat WHERE run <> $1", second)
    assert await left_behind(world) == 1  # a line with room
    await promote(world)
    assert await world.count("ready") == 2


async def test_a_run_that_is_blocked_and_stands_nowhere_is_found_unless_it_is_paused(world: World):
    """Planted: a run that was to be let in, and whoever wrote it did not."""
    job = await world.job_id(onDemand=True, concurrency={"limit": 1})
    _, stranded = await world.submit(2, limited(1), job=job)
    await world.sql("DELETE FROM foliot.seat WHERE run = $1", stranded)
    await world.control.pause(world.tenant, job)
    assert await left_behind(world) == 0
    await world.resume(job)
    await promote(world)
    await world.sql("DELETE FROM foliot.seat WHERE run = $1", stranded)
    assert await left_behind(world) == 1
    assert await left_behind(world) == 0
    hand = await world.worker()
    for _ in range(2):
        await promote(world)
        assert await hand.settle(await hand.claim()) == 1
    assert await world.count("run") == await world.count("seat") == 0


async def test_a_run_that_is_paused_while_the_sweeper_looks_is_left_alone(world: World):
    job = await world.job_id(onDemand=True, concurrency={"limit": 1})
    _, stranded = await world.submit(2, limited(1), job=job)
    await world.sql("DELETE FROM foliot.seat WHERE run = $1", stranded)
    async with world.unfinished() as line:
        await control(world, await line.connection()).pause(world.tenant, job)
        sweeping = asyncio.create_task(left_behind(world))
        await world.until_waiting()
    await sweeping
    assert await world.value("SELECT state FROM run WHERE id = $1", stranded) == 2


async def test_the_sweeper_counts_what_it_finds(world: World):
    before = telemetry.REGISTRY.get_sample_value("foliot_left_behind_total")
    first, _ = await world.submit(2, limited(1))
    await world.sql("DELETE FROM foliot.seat WHERE run = $1", first)
    assert await left_behind(world) == 1
    assert telemetry.REGISTRY.get_sample_value("foliot_left_behind_total") == before + 1


async def test_lines_that_nobody_needs_any_more_are_removed(world: World):
    sweeper = Sweeper(world.database)
    hand = await world.worker()
    await world.submit(2, limited(1))
    await sweeper.run_once()
    assert await world.value("SELECT idle_since FROM slot") is None
    for _ in range(2):
        await hand.settle(await hand.claim())
    await sweeper.run_once()
    assert await world.count("slot") == 1  # somebody may be about to join it
    await world.sql("UPDATE foliot.slot SET idle_since = idle_since - interval '2 minutes'")
    await world.submit(1, limited(1))
    assert await world.value("SELECT idle_since FROM slot") is None
    await hand.settle(await hand.claim())
    await sweeper.run_once()
    await world.sql("UPDATE foliot.slot SET idle_since = idle_since - interval '2 minutes'")
    await sweeper.run_once()
    assert await world.count("slot") == 0
    await sweeper.close()
