"""Limits: never more at once than agreed, in order where that is one, and nobody left behind."""

import random
from collections import defaultdict
from datetime import timedelta

import pytest

from foliot.domain.limits import Concurrency
from foliot.domain.outcome import Outcome
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.reap import Reaper
from foliot.store.admission import call_left_behind
from foliot.store.dispatch import Claimed
from foliot.store.submission import NewRun
from world import Hand, World

NOW = timedelta()
SOON = timedelta(milliseconds=1)


def limited(limit: int, key: str | None = None) -> Spec:
    return Spec(handler=FunctionHandler("noop"), concurrency=Concurrency(limit, key))


class Walk:
    """A random walk over everything that can happen to runs under limits, with what must hold after every step."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.dice = random.Random(seed)
        self.limits = {key: self.dice.choice([1, 1, 2, 3]) for key in range(4)}
        self.hands: list[Hand] = []
        self.held: dict[int, list[Claimed]] = defaultdict(list)
        self.key: dict[int, int] = {}
        self.submitted: dict[int, list[int]] = defaultdict(list)
        self.ended: dict[int, list[int]] = defaultdict(list)
        self.reaper = Reaper(world.database, timedelta(seconds=60))

    async def step(self) -> None:
        deed = self.dice.choices(
            [self.submit, self.claim, self.succeed, self.retry, self.release, self.promote, self.die],
            [30, 30, 30, 10, 10, 10, 3],
        )[0]
        await deed()
        await self.check()

    async def submit(self) -> None:
        key = self.dice.randrange(4)
        spec = await self.world.specs.intern(self.world.tenant, limited(self.limits[key]))
        delay = self.dice.choice([None, None, None, SOON])
        runs = [NewRun(spec, b"{}", delay=delay, limit_key=key) for _ in range(self.dice.randint(1, 4))]
        for run in (await self.world.submitter.submit(runs)).ids:
            self.key[run] = key
            self.submitted[key].append(run)

    async def claim(self) -> None:
        if not self.hands or self.dice.random() < 0.1:
            self.hands.append(await self.world.worker())
        hand = self.dice.choice(self.hands)
        self.held[hand.id] += await hand.claim(self.dice.randint(1, 6))

    def some_held(self) -> tuple[Hand, list[Claimed]]:
        hand = self.dice.choice(self.hands) if self.hands else None
        if hand is None or not self.held[hand.id]:
            return hand, []  # type: ignore[return-value]
        chosen = self.dice.sample(self.held[hand.id], self.dice.randint(1, len(self.held[hand.id])))
        self.held[hand.id] = [run for run in self.held[hand.id] if run not in chosen]
        return hand, chosen

    async def succeed(self) -> None:
        hand, runs = self.some_held()
        if runs:
            assert await hand.settle(runs) == len(runs)
            for run in runs:
                self.ended[self.key[run.id]].append(run.id)

    async def retry(self) -> None:
        hand, runs = self.some_held()
        if runs:
            assert await hand.conclude(runs, Outcome.snoozed(SOON, "later")) == len(runs)

    async def release(self) -> None:
        hand, runs = self.some_held()
        if runs:
            assert await hand.conclude(runs, Outcome.released()) == len(runs)

    async def promote(self) -> None:
        while await self.world.promoter.run_once():
            pass

    async def die(self) -> None:
        if self.hands:
            hand = self.hands.pop(self.dice.randrange(len(self.hands)))
            await hand.die()
            self.held.pop(hand.id)
            while await self.reaper.run_once():
                pass

    async def check(self) -> None:
        rows = await self.world.sql(
            "SELECT limit_key, count(*) AS going FROM run WHERE id > 0 AND state = 1 GROUP BY 1"
        )
        assert all(row["going"] <= self.limits[row["limit_key"]] for row in rows)
        at_odds = (
            "SELECT count(*) FROM run WHERE state = 1 AND EXISTS (SELECT FROM seat WHERE run = run.id AND state < 2)"
        )
        assert not await self.world.value(at_odds)
        assert not await self.world.value("SELECT count(*) FROM seat WHERE run NOT IN (SELECT id FROM run)")

    async def finish(self) -> None:
        for _ in range(10_000):
            if not await self.world.count("run"):
                break
            await self.promote()
            await self.claim()
            await self.succeed()
            await self.check()
        assert await self.world.count("run") == await self.world.count("seat") == 0
        for key, ended in self.ended.items():
            assert sorted(ended) == sorted(self.submitted[key])


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_happens_limits_hold_and_nobody_is_left_behind(world: World, seed: int):
    walk = Walk(world, seed)
    for _ in range(120):
        await walk.step()
    await walk.promote()
    async with world.unfinished() as line:
        assert await call_left_behind(line, NOW) == 0
    await walk.finish()
