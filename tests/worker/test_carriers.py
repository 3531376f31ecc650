"""What every way to work promises, through SQL and over HTTP alike."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest

from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.domain.report import Progress
from foliot.domain.seal import secret_text
from foliot.domain.spec import FunctionHandler, HttpHandler, Spec
from foliot.kit import telemetry
from foliot.store import dispatch
from foliot.store.database import Line
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.fleet import AT_REST, Load, Standing
from foliot.store.reports import Report
from foliot.worker.carrier import TIMED_EVERY
from foliot.worker.port import Carrier
from foliot.worker.settler import Settler
from worker.carrying import NewCarrier, through_http, through_sql
from worker.making import NOW
from world import PATIENCE, World

WORKER = 77
RETRIED = Outcome.again(Ending.FAILED, "not yet", timedelta(seconds=5))
ENTRUSTED = Outcome.entrusted(timedelta(hours=1))


@pytest.fixture(params=["sql", "http"])
async def new(request: pytest.FixtureRequest, world: World, dsn: str) -> AsyncIterator[NewCarrier]:
    way = through_sql(dsn) if request.param == "sql" else through_http(world)
    async with way as found:
        yield found


async def hired(new: NewCarrier, worker: int = WORKER + 1) -> Carrier:
    made = new(worker)
    made.lanes = list(await made.register(["default"], ["fn:noop"]))
    return made


@pytest.fixture
async def carrier(new: NewCarrier) -> Carrier:
    return await hired(new, WORKER)


async def claim(carrier: Carrier, number: int = 1, most: int = 10) -> list[Claimed]:
    return await carrier.claim(number, carrier.lanes, [0] * len(carrier.lanes), most, [most] * len(carrier.lanes))


def ended(runs: list[Claimed], outcome: Outcome = SUCCEEDED) -> list[Settlement]:
    return [Settlement(run, NOW, outcome) for run in runs]


async def test_what_is_claimed_comes_whole_and_what_succeeded_is_history(world: World, carrier: Carrier):
    (first,) = await world.submit(target=b'{"url":"http://example.com"}')
    job = await world.job_id(name="nightly", onDemand=True)
    await world.submit(job=job)
    runs = await claim(carrier)
    assert [(run.position, run.attempt, run.deaths, run.payload) for run in runs] == [
        (1, 0, 0, b"{}"),
        (2, 0, 0, b"{}"),
    ]
    assert (runs[0].id, runs[0].target, runs[0].job, runs[0].tenant) == (
        first,
        b'{"url":"http://example.com"}',
        None,
        world.tenant,
    )
    specs = await carrier.specs(sorted({run.spec for run in runs}))
    assert {(stored.lane, stored.spec.handler, stored.tenant) for stored in specs.values()} == {
        (carrier.lanes[0], FunctionHandler("noop"), "acme")
    }
    assert await carrier.job_names([job]) == {job: "nightly"}
    assert runs[0].scheduled_at == await world.value("SELECT scheduled_at FROM run WHERE id = $1", first)
    assert await carrier.settle(ended(runs)) == []
    await carrier.forget([runs[0].fence])
    rows = await world.sql("SELECT run, worker, fence, attempt, ending, state, started_at FROM history")
    assert {tuple(row) for row in rows} == {(run.id, WORKER, run.fence, 1, 1, 4, NOW) for run in runs}
    assert await world.count("run") == await world.count("claim") == 0


async def test_a_result_is_kept_and_an_attempt_can_go_on_outside(world: World, carrier: Carrier):
    first, second = await world.submit(2)
    runs = await claim(carrier)
    batch = [
        *ended(runs[:1], Outcome.succeeded(b'{"rows":7}')),
        *ended(runs[1:], ENTRUSTED),
    ]
    assert await carrier.settle(batch) == []
    assert await carrier.settle(batch) == [], "said again, it is no loss"
    await carrier.forget([runs[0].fence])
    assert await world.value("SELECT result FROM history WHERE run = $1", first) == b'{"rows":7}'
    token = carrier.voucher.token(second, runs[1].tenant, runs[1].fence)
    assert (await world.completer.complete(second, token, None)).ending is Ending.COMPLETED
    assert await carrier.settle(batch) == []
    assert await world.count("run") == await world.count("claim") == await world.count("outside") == 0


async def test_calls_are_signed_by_whoever_makes_them(world: World, carrier: Carrier):
    lanes = await carrier.register(["default"], ["http"])
    await world.submit(1, Spec(handler=HttpHandler("http://localhost/")))
    (run,) = await carrier.claim(2, list(lanes), [0], 10, [10])
    (stored,) = (await carrier.specs([run.spec])).values()
    assert secret_text(stored.signing) == await world.insights.signing_secret(world.tenant)


async def test_every_other_ending_is_recorded_as_it_was_told(world: World, carrier: Carrier):
    await world.submit(5)
    again, dead, released, snoozed, done = await claim(carrier)
    batch = [
        *ended([again], RETRIED),
        *ended([dead], Outcome.dead(Ending.FAILED, "for good", "shop.Broke")),
        Settlement(released, None, Outcome.released()),
        *ended([snoozed], Outcome.snoozed(timedelta(hours=1), "too early")),
        *ended([done]),
    ]
    assert await carrier.settle(batch) == []
    await carrier.forget([again.fence])
    assert await world.value("SELECT state FROM run WHERE id = $1", again.id) == 0
    assert await world.value("SELECT error FROM dead_letter WHERE id = $1", dead.id) == "for good"
    assert await world.value("SELECT error_class FROM dead_letter WHERE id = $1", dead.id) == "shop.Broke"
    assert await world.value("SELECT run FROM ready WHERE lane > 0") == released.id
    assert await world.value("SELECT attempt FROM run WHERE id = $1", snoozed.id) == 0
    assert await world.value("SELECT error FROM history WHERE run = $1 AND ending = 7", snoozed.id) == "too early"
    assert await world.value("SELECT error FROM history WHERE run = $1", again.id) == "not yet"
    assert await world.count("claim") == 0


async def test_a_claim_whose_reply_was_lost_is_answered_with_the_same_runs(world: World, carrier: Carrier):
    await world.submit(5)
    taken = await claim(carrier, 1, most=3)
    again = await claim(carrier, 1, most=3)
    assert {(run.id, run.fence, run.position) for run in again} == {(run.id, run.fence, run.position) for run in taken}
    assert len(taken) == 3
    assert await world.count("ready") == 2


async def test_a_settlement_may_be_repeated(world: World, carrier: Carrier):
    await world.submit(2)
    done, failed = await claim(carrier)
    batch = [*ended([done]), *ended([failed], RETRIED)]
    assert await carrier.settle(batch) == []
    await carrier.forget([done.fence])
    assert await carrier.settle(batch) == []
    assert await world.count("history") == 2


async def test_what_somebody_newer_holds_is_lost_and_changes_nothing(world: World, carrier: Carrier):
    await world.submit(3)
    lost, failed, kept = await claim(carrier)
    await world.sql("UPDATE run SET fence = 1000000 WHERE id = ANY ($1::bigint[])", [lost.id, failed.id])
    batch = [*ended([lost, kept]), *ended([failed], RETRIED)]
    for _ in range(2):
        assert {each.run.id for each in await carrier.settle(batch)} == {lost.id, failed.id}
    assert await world.value("SELECT array_agg(run) FROM history") == [kept.id]
    late = await world.sql("SELECT run, fence, tenant, attempt, worker, ending, error, started_at FROM late_result")
    assert {tuple(row) for row in late} == {
        (lost.id, lost.fence, world.tenant, 1, WORKER, 1, None, NOW),
        (failed.id, failed.fence, world.tenant, 1, WORKER, 2, "not yet", NOW),
    }


async def test_nobody_settles_or_forgets_what_another_worker_holds(world: World, carrier: Carrier, new: NewCarrier):
    rival = await hired(new)
    await world.submit()
    runs = await claim(carrier)
    assert len(await rival.settle(ended(runs))) == len(await rival.settle(ended(runs, RETRIED))) == 1
    await rival.forget([runs[0].fence])
    assert await rival.note_started([(runs[0], NOW)]) == set()
    assert await world.value("SELECT started_at FROM run WHERE id = $1", runs[0].id) is None
    assert await carrier.settle(ended(runs)) == []


async def test_a_claim_is_no_right_to_a_run_that_it_does_not_name(world: World, carrier: Carrier, new: NewCarrier):
    rival = await hired(new)
    await world.submit()
    (theirs,) = await claim(carrier)
    await world.submit()
    (own,) = await claim(rival)
    forged = msgspec.structs.replace(theirs, fence=own.fence)
    assert await rival.note_started([(forged, NOW), (own, NOW)]) == {(own.id, own.fence)}
    assert await world.value("SELECT started_at FROM run WHERE id = $1", theirs.id) is None
    for outcome in (SUCCEEDED, RETRIED, ENTRUSTED, Outcome.released()):
        assert len(await rival.settle(ended([forged], outcome))) == 1
    assert await rival.report([Report(forged.id, forged.fence, Progress(0.5), NOW, b"{}")]) == set()
    await carrier.report([Report(theirs.id, theirs.fence, None, NOW, b"[7]")])
    assert await rival.last_checkpoint(forged) is None
    assert await world.count("progress") == await world.count("outside") == await world.count("history") == 0
    assert await carrier.settle(ended([theirs])) == await rival.settle(ended([own])) == []


async def test_what_goes_on_outside_is_told_to_the_worker_that_entrusted_it(
    world: World, carrier: Carrier, new: NewCarrier
):
    rival = await hired(new)
    await world.submit()
    batch = ended(await claim(carrier), ENTRUSTED)
    assert await carrier.settle(batch) == await carrier.settle(batch) == []
    assert await rival.settle(batch) == batch


async def test_a_claim_that_arrives_when_its_worker_has_gone_on_is_found(world: World, carrier: Carrier, dsn: str):
    late = Line(dsn)
    (first,) = await world.submit()
    (known,) = await claim(carrier)
    (second,) = await world.submit()
    await dispatch.claim(late, WORKER, 2, carrier.lanes, [0], 10)  # sent before, given up, and here now
    await carrier.beat(AT_REST)
    (found,) = await carrier.strays([known.fence])
    assert (known.id, found.id) == (first, second)
    assert await carrier.specs([found.spec])
    assert await carrier.strays([known.fence, found.fence]) == []
    await late.close()


async def test_what_has_begun_is_noted(world: World, carrier: Carrier):
    await world.submit()
    (run,) = await claim(carrier)
    assert await carrier.note_started([(run, NOW)]) == {(run.id, run.fence)}
    assert await world.value("SELECT started_at FROM run WHERE id = $1", run.id) == NOW


async def test_what_may_begin_only_once_is_told_whether_it_is_still_ours(world: World, carrier: Carrier):
    await world.submit(2)
    kept, lost = await claim(carrier)
    await world.sql("UPDATE run SET fence = 1000000 WHERE id = $1", lost.id)
    for _ in range(2):  # a reply may be lost
        assert await carrier.note_started([(kept, NOW), (lost, NOW)]) == {(kept.id, kept.fence)}
    assert await world.value("SELECT started_at FROM run WHERE id = $1", lost.id) is None


async def test_a_heartbeat_renews_the_lease_until_the_worker_is_declared_dead(world: World, carrier: Carrier):
    await world.sql("UPDATE worker SET seen_at = seen_at - interval '1 minute'")
    assert await carrier.beat(AT_REST) == Standing(draining=False, paused=frozenset())
    assert await world.value("SELECT clock_timestamp() - seen_at < interval '30 s' FROM worker WHERE id = $1", WORKER)
    await world.sql("UPDATE worker SET state = 2")
    assert await carrier.beat(AT_REST) is None
    await world.sql("DELETE FROM worker")
    assert await carrier.beat(AT_REST) is None


async def test_who_leaves_is_dead_at_once(world: World, carrier: Carrier):
    carrier.hurry()
    assert await claim(carrier) == []
    await carrier.leave()
    assert await world.value("SELECT state FROM worker WHERE id = $1", WORKER) == 2
    assert await carrier.beat(AT_REST) is None


async def test_registering_twice_is_the_same_as_once(world: World, carrier: Carrier):
    assert await carrier.register(["default"], ["fn:noop"]) == dict.fromkeys(carrier.lanes, "default")
    assert await world.count("worker") == 1


async def test_what_was_replayed_and_whose_worker_died_is_told(world: World, carrier: Carrier):
    (run,) = await world.submit()
    await world.sql("UPDATE run SET attempt = 3, deaths = -1, forgiven = 2 WHERE id = $1", run)
    (claimed,) = await claim(carrier)
    assert (claimed.attempt, claimed.deaths, claimed.forgiven, claimed.failures) == (3, -1, 2, 1)


async def test_the_fleet_sees_what_a_worker_offers_and_has_in_hand(world: World, carrier: Carrier):
    (lane,) = carrier.lanes
    assert await carrier.beat(Load({lane: 3}, {lane: 1.5})) is not None
    (view,) = (await world.fleet.workers(state="live", limit=10, cursor=None)).items
    assert (view.name, view.host, view.pid, view.version) == (f"worker {WORKER}", "oslo", 4711, "9.9")
    assert (view.app, view.concurrency, view.running) == ("shop:worker", 30, 3)
    assert (view.queues, view.handlers) == (["default"], ["fn:noop"])
    await world.submit()
    await carrier.note_started([(run, NOW) for run in await claim(carrier)])
    assert await world.value("SELECT running FROM worker") == [3]  # who tells of starts tells nothing of the load


async def test_a_heartbeat_learns_that_somebody_drains_it(world: World, carrier: Carrier):
    await world.fleet.drain(WORKER)
    standing = await carrier.beat(AT_REST)
    assert standing is not None
    assert standing.draining


async def test_nothing_is_claimed_of_a_paused_queue_and_the_heartbeat_tells(world: World, carrier: Carrier):
    await world.submit()
    await world.fleet.pause("default")
    carrier.hurry()  # nobody waits for it
    assert await claim(carrier) == []
    standing = await carrier.beat(AT_REST)
    assert standing is not None
    assert standing.paused == frozenset(carrier.lanes)
    await world.fleet.resume("default")
    assert len(await claim(carrier, 2)) == 1
    assert await carrier.beat(AT_REST) == Standing(draining=False, paused=frozenset())


def never(lost: list[Settlement]) -> None:
    raise AssertionError(lost)


@pytest.mark.parametrize("words", ["NUL \0 here", "ever"])
async def test_an_outcome_that_cannot_be_kept_fails_alone(world: World, carrier: Carrier, words: str):
    bad = Outcome.again(Ending.FAILED, words, timedelta.max if words == "ever" else timedelta(0))
    await world.submit(20)
    runs, settler = await claim(carrier, most=20), Settler(carrier, never)
    settler.expect(runs[0].fence, 20)
    for number, run in enumerate(runs):
        how = bad if number == 7 else SUCCEEDED if number % 2 else Outcome.dead(Ending.FAILED, "boom")
        settler.add(Settlement(run, NOW, how))
    assert await settler.run_once() == 20
    assert await world.count("history") == 20
    assert await world.value("SELECT count(*) FROM history WHERE state = 4") == 9
    (row,) = await world.sql("SELECT attempt, state FROM run WHERE id > 0")
    assert tuple(row) == (1, 0)  # it is tried again, as it would have been
    error = await world.value("SELECT error FROM history WHERE run = $1", runs[7].id)
    assert "\0" not in error
    assert "could not be kept" in error or "here" in error


async def test_a_run_whose_row_is_locked_does_not_hold_up_the_others(world: World, carrier: Carrier):
    await world.submit(6)
    runs, settler = await claim(carrier), Settler(carrier, never)
    settler.expect(runs[0].fence, 6)
    async with world.unfinished() as rival:
        await rival.execute("SELECT FROM run WHERE id = $1 FOR UPDATE", runs[3].id)
        for run in runs[:5]:
            settler.add(Settlement(run, NOW, SUCCEEDED))
        assert await settler.run_once() == 4
        settler.add(Settlement(runs[5], NOW, SUCCEEDED))
        assert await settler.run_once() == 1
        assert settler.backlog == 1
        assert await carrier.beat(AT_REST) is not None
    settler._try_again = 0.0
    assert await settler.run_once() == 1
    assert await world.value("SELECT count(*) FROM history WHERE state = 4") == 6


def timed() -> tuple[float, float]:
    """How many claims were timed in this process, and how long they took in all."""
    counts = (telemetry.REGISTRY.get_sample_value(f"foliot_claim_seconds_{what}") for what in ("count", "sum"))
    claims, seconds = (count or 0.0 for count in counts)
    return claims, seconds


async def test_a_claim_that_brings_something_is_timed(world: World, carrier: Carrier):
    before, _ = timed()
    await world.submit()
    assert await claim(carrier)
    assert timed()[0] == before + 1


async def test_of_claims_that_wait_for_work_one_a_second_is_timed_without_its_wait(world: World, dsn: str):
    clock, patience = asyncio.get_running_loop().time, timedelta(seconds=PATIENCE)
    async with through_sql(dsn) as new:
        carrier = new(WORKER)
        lanes = list(await carrier.register(["default"], ["fn:noop"]))
        claims, seconds = timed()
        began = clock()
        claiming = asyncio.ensure_future(carrier.claim(1, lanes, [0], 10, [10], patience))
        await world.until(
            "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
        )
        waited = clock() - began
        (first,) = await world.submit()
        assert [run.id for run in await claiming] == [first]
        assert timed()[0] == claims + 1
        assert timed()[1] - seconds <= clock() - began - waited
        carrier._timed = clock()
        await world.submit()
        assert len(await carrier.claim(2, lanes, [0], 10, [10], patience)) == 1
        assert timed()[0] == claims + 1
        carrier._timed -= TIMED_EVERY
        await world.submit()
        assert len(await carrier.claim(3, lanes, [0], 10, [10], patience)) == 1
        assert timed()[0] == claims + 2
