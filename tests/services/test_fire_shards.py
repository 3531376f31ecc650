"""Schedulers that share the shards: each fires its own, and nothing hangs on it: nobody's stall silences a shard."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from clocked import Time
from foliot.domain.shards import ALL, OVERDUE, SWEEP
from foliot.kit import telemetry
from foliot.services import fire
from foliot.services.fire import Firer
from foliot.services.membership import Membership
from foliot.services.promote import Promoter
from foliot.store.recovery import is_gone
from services.conftest import InChunks
from world import World

EVEN = frozenset(range(0, 256, 2))
ODD = ALL - EVEN
DAY = timedelta(days=1)
NOBODY: frozenset[int] = frozenset()


def _fixed(shards: frozenset[int]):
    return lambda: shards


async def _schedules(world: World, count: int) -> None:
    for number in range(count):
        await world.job_id(every=f"PT{24 + number}H", overlap="allow")


async def _fired(world: World) -> list[int]:
    rows = await world.sql("SELECT schedule FROM job JOIN run ON run.job = job.id ORDER BY schedule")
    return [row["schedule"] for row in rows]


async def _until_done(*duties, now=None) -> None:
    while sum([await duty.run_once(now) for duty in duties]):
        pass


async def test_each_fires_its_own_shards(world: World):
    await _schedules(world, 6)
    at = await world.value("SELECT max(next_at) FROM schedule")
    await world.sql("UPDATE schedule SET next_at = $1", at)
    even, odd = Firer(world.database, shards=_fixed(EVEN)), Firer(world.database, shards=_fixed(ODD))
    await _until_done(even, now=at)
    assert {schedule % 2 for schedule in await _fired(world)} == {0}
    assert await even.pause() == 1.0
    assert await odd.pause(1e9) > 0
    await _until_done(odd, now=at)
    assert len(await _fired(world)) == 6
    await even.close()
    await odd.close()


async def test_how_long_to_sleep_follows_ones_own_shards(world: World):
    await _schedules(world, 2)
    first, second = (row["id"] for row in await world.sql("SELECT id FROM schedule ORDER BY id"))
    await world.sql(
        "UPDATE schedule SET cursor = cursor - $2::interval, next_at = next_at - $2 WHERE id = $1", first, 2 * DAY
    )
    busy, idle = (Firer(world.database, shards=_fixed(frozenset({each % 256}))) for each in (first, second))
    nobody = Firer(world.database, shards=_fixed(NOBODY))
    assert await busy.pause() == 0.0
    assert await idle.pause() == 1.0
    assert await nobody.pause() == 1.0
    for each in (busy, idle, nobody):
        await each.close()


async def test_two_who_both_believe_that_all_is_theirs_fire_every_instant_once(world: World, in_chunks: InChunks):
    in_chunks(3)
    await _schedules(world, 5)
    await world.sql(
        "INSERT INTO subscription SELECT schedule, job + n, after, until, tenant, spec, exclusive, closed, payload"
        "  FROM subscription, generate_series(1, 9) AS n"
    )
    await world.make_overdue(by=2 * DAY)
    at = await world.value("SELECT clock_timestamp()")
    firers = [Firer(world.database, shards=_fixed(ALL)) for _ in range(2)]
    open_ones = "SELECT count(*) FROM firing WHERE closed_at IS NULL"

    async def until_done(firer: Firer) -> None:
        while await firer.run_once(at) or await world.value(open_ones):
            pass

    await asyncio.gather(*map(until_done, firers))
    fired = await world.sql("SELECT sum(fired) AS fired, count(*) FILTER (WHERE missed) AS missed FROM firing")
    made = await world.sql("SELECT job, scheduled_at FROM run WHERE id > 0")
    assert len({tuple(row) for row in made}) == len(made) == fired[0]["fired"]
    assert await world.count("history") == 0
    for firer in firers:
        await firer.close()


async def test_a_firing_that_its_owner_left_in_mid_chunk_is_ended_by_the_next_one(
    clocked_world: World, time, in_chunks: InChunks
):
    world = clocked_world
    in_chunks(10)
    await world.job_id(every="PT24H")
    await world.sql(
        "INSERT INTO subscription SELECT schedule, job + n, after, until, tenant, spec, exclusive, closed, payload"
        "  FROM subscription, generate_series(1, 34) AS n"
    )
    first, second = (Membership(world.database, number, str(number), time) for number in (1, 2))
    await first.run_once()
    await second.run_once()
    owner, heir = (Firer(world.database, shards=lambda each=each: each.shards, clock=time) for each in (first, second))
    await time.jumps((await world.next_at() - time.now).total_seconds())
    await first.run_once()
    await owner.run_once()
    assert await world.count("run") == 10
    for _ in range(8):  # the owner is dead
        await time.passes(1)
        await second.run_once()
        await _until_done(heir)
    assert await world.value("SELECT fired FROM firing WHERE closed_at IS NOT NULL") == 35
    assert await world.value("SELECT count(DISTINCT job) FROM run WHERE id > 0") == 35
    for each in (first, second, owner, heir):
        await each.close()


async def test_what_its_owner_leaves_undone_for_long_is_done_by_whoever_sees_it(clocked_world: World, time: Time):
    world = clocked_world
    await world.job_id(every="PT1H")
    taken = telemetry.OVERDUE_TAKEN._value.get()
    other = Firer(world.database, shards=_fixed(NOBODY), clock=time)
    await time.jumps((await world.next_at() - time.now).total_seconds())
    for _ in range(int(OVERDUE.total_seconds()) - 1):
        await time.passes(1)
        assert await other.run_once() == 0
    await time.passes(SWEEP)
    await _until_done(other)
    assert await world.count("run") == 1
    assert telemetry.OVERDUE_TAKEN._value.get() == taken + 2  # its schedule, and the firing
    await time.passes(2 * SWEEP)
    assert await other.run_once() == 0
    assert await world.value("SELECT count(*) FROM firing WHERE closed_at IS NULL") == 0
    assert await world.count("run") == 1
    await other.close()


async def test_a_firing_that_stays_open_is_ended_by_whoever_sees_it(clocked_world: World, time: Time):
    world = clocked_world
    await world.job_id(every="PT1H")
    await time.jumps((await world.next_at() - time.now).total_seconds())
    await world.advance()
    other = Firer(world.database, shards=_fixed(NOBODY), clock=time)
    await time.passes(SWEEP)
    await _until_done(other)
    assert await world.count("run") == 0
    await time.passes(2 * SWEEP)
    await _until_done(other)
    assert await world.count("run") == 1
    await other.close()


async def test_a_stopped_scheduler_keeps_its_locks_no_longer_than_its_shards(world: World):
    connection = await world.firer._line.connection()
    assert await connection.fetchval("SHOW idle_in_transaction_session_timeout") == "5s"
    assert is_gone(asyncpg.IdleInTransactionSessionTimeoutError("terminating connection"))


async def test_who_wakes_up_in_mid_transaction_has_done_nothing_and_goes_on(world: World):
    await world.job_id(every="PT24H")
    at = await world.next_at()
    line = world.firer._line
    line._settings["idle_in_transaction_session_timeout"] = "100ms"
    lock = fire.lock_to_fire

    async def stopped(connection, schedules, *, wait):
        locked = await lock(connection, schedules, wait=wait)
        pid = connection.get_server_pid()
        await world.until("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid)
        return locked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fire, "lock_to_fire", stopped)
        with pytest.raises(Exception, match=r".") as caught:
            await world.firer.run_once(at)
    assert is_gone(caught.value)
    line._settings["idle_in_transaction_session_timeout"] = "5s"
    await world.fire(at)
    assert await world.count("run") == 1


@pytest.mark.parametrize("delay", [timedelta(), timedelta(hours=1)])
async def test_what_falls_due_is_promoted_by_whose_it_is(world: World, delay: timedelta):
    """One by one, each is the first of its block of numbers; together they stand side by side in one."""
    for _ in range(20):
        await world.submit(1, delay=delay)
    await world.submit(60, delay=delay)
    now = await world.value("SELECT clock_timestamp()") + 2 * delay
    even, odd = Promoter(world.database, _fixed(EVEN)), Promoter(world.database, _fixed(ODD))
    promoted = [await even.run_once(now), await odd.run_once(now)]
    assert sum(promoted) == 80
    assert min(promoted) > 20
    assert await even.pause() == await odd.pause() == 0.5
    assert await world.count("ready") == 80
    await even.close()
    await odd.close()


async def test_runs_that_nobody_promotes_are_promoted_by_whoever_sees_them(clocked_world: World, time: Time):
    world = clocked_world
    await world.submit(3, delay=timedelta(seconds=5))
    await world.submit(2, delay=timedelta(seconds=90))
    other = Promoter(world.database, _fixed(NOBODY), time)
    assert await other.pause() == 0.5
    await time.passes(5 + OVERDUE.total_seconds() - 1)
    assert await other.run_once() == 0
    await time.passes(SWEEP)
    assert await other.run_once() == 3
    await time.passes(90)
    assert await other.run_once() == 2
    assert await world.count("ready") == 5
    await other.close()
