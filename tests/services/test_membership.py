"""Many schedulers: whoever joins, leaves, dies, is stopped or cut off, the shards are shared out anew within 10 s."""

import random
from contextlib import suppress

import pytest

from clocked import Time
from foliot.domain.shards import ALL, assign
from foliot.kit import telemetry
from foliot.services.membership import Membership
from foliot.store import members
from foliot.store.members import LEASE
from world import World

PROMISED = 10
"""Seconds."""
HOUR = 3_600


class Fleet:
    """Schedulers that beat once a second for as long as the test lets them."""

    def __init__(self, world: World, time: Time) -> None:
        self.world = world
        self.time = time
        self.all: dict[int, Membership] = {}
        self.silent: set[int] = set()

    def start(self, number: int) -> Membership:
        self.all[number] = Membership(self.world.database, number, f"scheduler {number}", self.time)
        return self.all[number]

    async def lives(self, seconds: int) -> None:
        """Let so much time pass, with everybody beating who can."""
        for _ in range(seconds):
            await self.time.passes(1)
            await self.beat()

    async def beat(self) -> None:
        for number, each in self.all.items():
            if number not in self.silent:
                while await each.run_once():
                    pass

    async def leaves(self, number: int) -> None:
        await self.all.pop(number).close()

    def dies(self, number: int) -> None:
        """Killed: nobody says good-bye. Its connection is closed in the end."""
        self.silent.add(number)

    async def owners(self) -> dict[int, frozenset[int]]:
        rows = await self.world.sql("SELECT owner, array_agg(shard) AS shards FROM shard GROUP BY owner")
        return {row["owner"]: frozenset(row["shards"]) for row in rows}

    async def epochs(self) -> dict[int, int]:
        return {row["shard"]: row["epoch"] for row in await self.world.sql("SELECT shard, epoch FROM shard")}

    async def is_shared_out(self) -> bool:
        """Whether the database and everybody in it agree, and nobody else holds anything."""
        living = [number for number in self.all if number not in self.silent]
        shares = {number: share for number, share in assign(living).items() if share}
        return await self.owners() == shares and all(
            self.all[number].shards == shares.get(number, frozenset()) for number in living
        )


@pytest.fixture
async def fleet(clocked_world: World, time: Time):
    fleet = Fleet(clocked_world, time)
    yield fleet
    for each in fleet.all.values():
        await each.close()


async def test_one_alone_looks_after_everything_from_its_first_beat(fleet: Fleet):
    alone = fleet.start(1)
    assert alone.shards == frozenset()
    assert await alone.run_once() == 256
    assert alone.shards == ALL
    assert await alone.run_once() == 0


async def test_who_joins_gets_its_share(fleet: Fleet):
    for number in (1, 2, 3):
        fleet.start(number)
        await fleet.lives(3)
        assert await fleet.is_shared_out()


async def test_what_is_let_go_is_looked_after_until_its_new_owner_has_had_a_beat(fleet: Fleet):
    first, second = fleet.start(1), fleet.start(2)
    await first.run_once()
    await second.run_once()
    await first.run_once()
    assert first.shards == ALL
    await second.run_once()
    await first.run_once()
    assert first.shards.isdisjoint(second.shards)
    assert first.shards | second.shards == ALL


async def test_who_leaves_gives_everything_back_at_once(fleet: Fleet):
    for number in (1, 2, 3):
        fleet.start(number)
    await fleet.lives(5)
    await fleet.leaves(2)
    assert set(await fleet.owners()) == {1, 3, None}
    await fleet.lives(1)
    assert await fleet.is_shared_out()


async def test_the_shards_of_the_dead_are_taken_over(fleet: Fleet):
    for number in (1, 2, 3):
        fleet.start(number)
    await fleet.lives(5)
    before = await fleet.owners()
    fleet.dies(2)
    await fleet.lives(int(LEASE.total_seconds()))
    assert await fleet.owners() == before  # it may be slow
    await fleet.lives(PROMISED - int(LEASE.total_seconds()))
    assert await fleet.is_shared_out()
    assert before[1] <= (await fleet.owners())[1]


async def test_who_was_killed_is_known_by_the_connection_that_it_lost(fleet: Fleet):
    for number in (1, 2, 3):
        fleet.start(number)
    await fleet.lives(5)
    pid = await fleet.world.value("SELECT backend FROM scheduler WHERE id = 2")
    fleet.dies(2)
    await fleet.all[2]._line.close()
    await fleet.world.until("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid)
    await fleet.lives(1)
    assert await fleet.is_shared_out()


async def test_who_lost_its_connection_and_lives_is_back_with_its_next_beat(fleet: Fleet):
    for number in (1, 2):
        fleet.start(number)
    await fleet.lives(5)
    await fleet.all[2]._line.close()
    await fleet.lives(3)
    assert await fleet.is_shared_out()


async def test_who_was_stopped_owns_nothing_when_it_wakes_and_has_its_share_soon(fleet: Fleet):
    for number in (1, 2):
        fleet.start(number)
    await fleet.lives(5)
    sleeper = fleet.all[2]
    assert sleeper.shards
    fleet.silent.add(2)
    await fleet.lives(PROMISED)
    assert sleeper.shards == frozenset()
    assert await fleet.is_shared_out()
    fleet.silent.clear()
    await fleet.lives(3)
    assert await fleet.is_shared_out()
    assert sleeper.shards


async def test_who_is_cut_off_stops_before_others_begin(fleet: Fleet, monkeypatch):
    for number in (1, 2):
        fleet.start(number)
    await fleet.lives(5)
    beat = members.beat

    async def cut_off(line, scheduler, name):
        if scheduler == 2:
            raise ConnectionError
        return await beat(line, scheduler, name)

    with monkeypatch.context() as patch:
        patch.setattr(members, "beat", cut_off)
        for _ in range(PROMISED):
            await fleet.time.passes(1)
            with suppress(ConnectionError):
                await fleet.all[2].run_once()
            await fleet.all[1].run_once()
            assert fleet.all[1].shards.isdisjoint(fleet.all[2].shards)
        assert fleet.all[1].shards == ALL
    await fleet.lives(3)
    assert await fleet.is_shared_out()


async def test_a_beat_that_stops_half_way_keeps_nobody_from_taking_over(fleet: Fleet, monkeypatch):
    first, second = fleet.start(1), fleet.start(2)

    async def stopped(*_):
        raise ConnectionError

    for step in ("bury", "live", "hold", "held"):
        with monkeypatch.context() as patch:
            patch.setattr(members, step, stopped)
            with suppress(ConnectionError):
                await second.run_once()
        for _ in range(PROMISED):
            await fleet.time.passes(1)
            await first.run_once()
        assert first.shards == ALL
        assert await fleet.owners() == {1: ALL}


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_ten_quiet_seconds_later_everything_is_shared_out(fleet: Fleet, seed: int):
    dice = random.Random(seed)
    epochs = await fleet.epochs()
    for number in range(1, 7):
        fleet.start(number)
        match dice.choice(("join", "leave", "die", "stop", "wake", "jump")):
            case "leave":
                await fleet.leaves(dice.choice(list(fleet.all)))
            case "die" | "stop":
                fleet.dies(dice.choice(list(fleet.all)))
            case "wake":
                fleet.silent.clear()
            case "jump":
                await fleet.time.jumps(dice.choice((-HOUR, HOUR)))
        await fleet.lives(dice.choice((1, 2, PROMISED)))
        before, epochs = epochs, await fleet.epochs()
        assert all(epochs[shard] >= before[shard] for shard in ALL)
    await fleet.lives(PROMISED)
    assert await fleet.is_shared_out()


async def test_the_epoch_rises_with_every_change_of_hands_and_never_else(fleet: Fleet):
    fleet.start(1)
    await fleet.lives(3)
    assert set((await fleet.epochs()).values()) == {1}
    fleet.start(2)
    await fleet.lives(3)
    epochs = await fleet.epochs()
    assert {shard for shard, epoch in epochs.items() if epoch == 2} == fleet.all[2].shards
    await fleet.leaves(2)
    await fleet.lives(1)
    assert sorted(set((await fleet.epochs()).values())) == [1, 3]


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
async def test_a_jump_of_the_databases_clock_locks_nobody_out_and_is_told(fleet: Fleet, seconds: int):
    for number in (1, 2, 3):
        fleet.start(number)
    await fleet.lives(5)
    fleet.dies(3)  # with a row that is from the future, once the clock is set back
    noticed = telemetry.CLOCK_JUMPS._value.get()
    await fleet.time.jumps(seconds)
    await fleet.lives(PROMISED)
    assert await fleet.is_shared_out()
    assert telemetry.CLOCK_JUMPS._value.get() == noticed + 2


async def test_a_slow_answer_is_no_jump(fleet: Fleet, monkeypatch):
    alone = fleet.start(1)
    await fleet.lives(1)
    beat = members.beat
    noticed = telemetry.CLOCK_JUMPS._value.get()

    async def slow(*arguments):
        now = await beat(*arguments)
        await fleet.time.passes(20)
        return now

    with monkeypatch.context() as patch:
        patch.setattr(members, "beat", slow)
        await alone.run_once()
    assert alone.shards == frozenset()  # the lease counts from when the beat was sent
    await fleet.lives(2)
    assert alone.shards == ALL
    assert telemetry.CLOCK_JUMPS._value.get() == noticed


async def test_a_scheduler_that_ends_does_not_wait_for_a_database_that_is_away(fleet: Fleet, monkeypatch):
    alone = fleet.start(1)
    await fleet.lives(1)

    async def nobody_there(*_):
        raise ConnectionError

    monkeypatch.setattr(members, "leave", nobody_there)
    await alone.close()
    assert alone.shards == frozenset()


async def test_people_see_who_looks_after_what(fleet: Fleet):
    for number in (1, 2):
        fleet.start(number)
    await fleet.lives(3)
    rows = await members.schedulers(fleet.world.database)
    assert [(row.id, row.shards) for row in rows] == [(each, len(share)) for each, share in assign([1, 2]).items()]
    assert max(row.epoch for row in rows) == 2
