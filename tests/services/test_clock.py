"""The database's clock jumps: nothing fires twice, nothing sleeps for ever, nobody is declared dead for it."""

from datetime import datetime, timedelta

import pytest

from api.calling import Caller, application
from clocked import Time
from foliot.kit import telemetry
from foliot.services.gauges import Gauges
from foliot.services.membership import Membership
from foliot.services.reap import Reaper
from foliot.store import fleet, members
from foliot.store.fleet import HEARTBEAT, LEASE
from telling import told_of
from world import World

HOUR = 3_600
MINUTE = timedelta(minutes=1)
SECONDS = int(LEASE.total_seconds())


async def _instants(world: World) -> list:
    """Every instant that has an outcome, with what became of it."""
    return [
        (row["at"], row["through"], row["fired"])
        for row in await world.sql("SELECT at, through, fired FROM firing WHERE closed_at IS NOT NULL ORDER BY at")
    ]


async def _every_minute(world: World) -> None:
    """Two jobs on one schedule: of a single one the run is all that is written down."""
    for _ in range(2):
        await world.job_id(every="PT1M", overlap="allow")


async def _fire_for(world: World, time: Time, minutes: int) -> None:
    for _ in range(2 * minutes):
        await time.passes(30)
        await world.fire()


async def test_after_a_jump_forward_everything_between_has_an_outcome(clocked_world: World, time: Time):
    await _every_minute(clocked_world)
    await _fire_for(clocked_world, time, 5)
    fired = await clocked_world.count("run")
    await time.jumps(HOUR)
    await _fire_for(clocked_world, time, 5)
    outcomes = await _instants(clocked_world)
    accounted = [at + number * MINUTE for at, through, _ in outcomes for number in range((through - at) // MINUTE + 1)]
    assert accounted == [accounted[0] + number * MINUTE for number in range(70)]
    assert fired < await clocked_world.count("run") < fired + 60
    assert await clocked_world.value("SELECT count(*) FROM firing WHERE missed OR passed_over > 0") > 0


async def test_a_job_made_while_the_clock_is_behind_owns_no_instant_that_has_been_dealt_with(
    clocked_world: World, time: Time
):
    await _every_minute(clocked_world)
    await _fire_for(clocked_world, time, 5)
    await time.jumps(-HOUR)
    job = await clocked_world.job_id(every="PT1M", overlap="allow")
    await _fire_for(clocked_world, time, 65)
    told = await clocked_world.ledger.occurrences(
        clocked_world.tenant, job, since=None, until=None, status=None, limit=500, cursor=None
    )
    assert len(told.items) in range(5, 12)
    assert {each.status for each in told.items} == {"fired"}


async def test_after_a_jump_back_nothing_fires_twice_and_all_goes_on_when_the_clock_has_caught_up(
    clocked_world: World, time: Time
):
    await _every_minute(clocked_world)
    await _fire_for(clocked_world, time, 5)
    before = await _instants(clocked_world)
    await time.jumps(-HOUR)
    assert await clocked_world.firer.pause() == 1.0  # it never sleeps for longer than it may be wrong
    await _fire_for(clocked_world, time, 59)
    assert await _instants(clocked_world) == before
    await _fire_for(clocked_world, time, 6)
    after = await _instants(clocked_world)
    assert after[: len(before)] == before
    assert [at for at, _, _ in after] == [before[0][0] + number * MINUTE for number in range(len(after))]
    assert len(after) == len(before) + 5
    assert await clocked_world.value("SELECT 2 * count(DISTINCT scheduled_at) = count(*) FROM run WHERE id > 0")


async def test_what_was_missed_by_a_jump_forward_stays_so_when_the_clock_is_set_back(clocked_world: World, time: Time):
    """It lies in the future again, and will never fire: the cursor is past it."""
    await _every_minute(clocked_world)
    job = await clocked_world.value("SELECT min(id) FROM job")
    await _fire_for(clocked_world, time, 5)
    await time.jumps(HOUR)
    await _fire_for(clocked_world, time, 1)
    dealt_with = time.now
    await time.jumps(-HOUR)
    told = await told_of(clocked_world, job)
    assert [each.at for each in told] == [told[0].at + number * MINUTE for number in range(66)]
    assert {each.status for each in told} == {"fired", "missed"}
    assert sum(each.at > time.now and each.status == "missed" for each in told) > 50
    later = (await told_of(clocked_world, job, until=dealt_with + 3 * MINUTE))[len(told) :]
    assert [each.status for each in later] == ["expected"] * 3
    gaps = await clocked_world.ledger.gaps(clocked_world.tenant, since=None, until=None, limit=10, cursor=None)
    assert sum(gap.instants for gap in gaps.items) > 50
    assert gaps.items[0].last > time.now


async def test_what_a_paused_job_went_without_stays_so_when_the_clock_is_set_back(clocked_world: World, time: Time):
    await _every_minute(clocked_world)
    job = await clocked_world.value("SELECT min(id) FROM job")
    await clocked_world.control.pause(clocked_world.tenant, job)
    await time.jumps(HOUR)
    await _fire_for(clocked_world, time, 1)
    await time.jumps(-HOUR)
    told = await told_of(clocked_world, job)
    assert len(told) == 61
    assert {(each.status, each.reason) for each in told} == {("skipped", "the job was paused")}


async def test_a_run_that_was_made_after_the_clock_was_set_back_is_found_when_it_is_over(
    clocked_world: World, time: Time
):
    await _every_minute(clocked_world)
    job = await clocked_world.value("SELECT min(id) FROM job")
    await time.jumps(60)
    await clocked_world.advance()
    await time.jumps(-HOUR)
    await clocked_world.fire()
    await clocked_world.promoter.run_once()
    worker = await clocked_world.worker()
    await worker.settle(await worker.claim())
    (told,) = await told_of(clocked_world, job)
    assert (told.status, told.run_status) == ("fired", "completed")


async def test_a_firing_that_was_open_when_the_clock_was_set_back_is_ended(clocked_world: World, time: Time):
    await clocked_world.job_id(every="PT1M")
    await time.jumps(60)
    await clocked_world.advance()
    await time.jumps(-HOUR)
    await clocked_world.fire()
    assert await clocked_world.count("run") == 1


async def test_a_preview_begins_when_the_database_says_that_it_is_now(clocked_world: World, time: Time):
    api = Caller(application(clocked_world), clocked_world.key)
    (fire,) = (await api.get("/v1/schedules:preview?every=PT1H&count=1")).json["items"]
    assert datetime.fromisoformat(fire["at"]) - time.now == timedelta(hours=1)


async def test_a_clock_that_is_behind_what_has_been_fired_is_told(clocked_world: World, time: Time):
    membership = Membership(clocked_world.database, 1, "one", time)
    await membership.run_once()
    gauges = Gauges(clocked_world.database, time)

    async def told() -> float:
        await time.passes(6)
        await gauges.measure()
        return telemetry.CLOCK_BEHIND._value.get()

    assert await told() == 0
    await membership.run_once()
    await time.jumps(-4 - 6)
    assert await told() == 0  # a few seconds are nothing to call somebody for
    await time.jumps(4)
    await membership.run_once()
    await time.jumps(-HOUR)
    assert await told() == HOUR - 6
    assert (await members.clock_behind(clocked_world.database)).total_seconds() == HOUR - 6
    await membership.run_once()
    assert await told() == HOUR - 12
    await time.jumps(HOUR)
    assert await told() == 0
    await membership.close()


async def test_who_holds_no_shards_any_more_is_not_counted(clocked_world: World, time: Time):
    gauges = Gauges(clocked_world.database, time)
    await gauges.measure()
    assert telemetry.SHARDS_UNHELD._value.get() == 256
    membership = Membership(clocked_world.database, 1, "one", time)
    await membership.run_once()
    for passing, living, unheld in ((5.5, 0, 256), (0, 1, 0)):
        await time.passes(passing)
        if not passing:
            await membership.run_once()
            await time.jumps(0.1)
            time.steady += 6
        await gauges.measure()
        assert telemetry.SCHEDULERS._value.get() == living
        assert telemetry.SHARDS_UNHELD._value.get() == unheld
    await membership.close()


@pytest.mark.parametrize("jump", [HOUR, -HOUR, 8, -8])
async def test_no_worker_is_declared_dead_because_the_clock_jumped(clocked_world: World, time: Time, jump: int):
    await time.server_started(ago=600)  # less than it is set back
    worker = await clocked_world.worker()
    reaper = Reaper(clocked_world.database, monotonic=time)
    for second in range(6 * SECONDS):
        if second == 2 * SECONDS + 4:
            await time.jumps(jump)
        if second % HEARTBEAT.total_seconds() == 0:
            assert await fleet.beat(worker.line, worker.id)
        await reaper.run_once()
        await time.passes(1)
    await reaper.close()


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_a_worker_that_died_before_the_clock_jumped_is_not_believed_for_an_hour(
    clocked_world: World, time: Time, jump: int
):
    await time.server_started(ago=600)
    await clocked_world.submit()
    worker = await clocked_world.worker()
    await worker.claim()
    reaper = Reaper(clocked_world.database, monotonic=time)
    await reaper.run_once()
    await time.jumps(jump)
    for _ in range(SECONDS + 3):
        await time.passes(1)
        await reaper.run_once()
    assert await clocked_world.value("SELECT state FROM worker") == 2
    assert await clocked_world.count("ready") == 1
    await reaper.close()
