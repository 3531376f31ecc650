"""Endings: a run leaves the hot tables once, and everything that happened to it is on record."""

from datetime import UTC, datetime, timedelta

from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.domain.states import State
from foliot.store import dispatch
from foliot.store.dispatch import Settlement
from foliot.store.statements import SQL
from world import World

AGAIN = Outcome.again(Ending.FAILED, "boom", timedelta(minutes=5))
DEAD = Outcome.dead(Ending.TIMED_OUT, "too slow")


async def _history(world: World):
    return [
        tuple(row) for row in await world.sql("SELECT run, attempt, ending, state FROM history ORDER BY run, fence")
    ]


async def test_a_success_leaves_one_row_of_history_and_nothing_else(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    taken = await worker.claim()
    assert await worker.settle(taken) == 1
    assert await _history(world) == [(run, 1, Ending.COMPLETED, State.SUCCEEDED)]
    assert await world.count("run") == await world.count("ready") == 0


async def test_settling_twice_writes_once_and_is_recognised_as_ours(world: World):
    await world.submit(3)
    worker = await world.worker()
    taken = await worker.claim()
    assert await worker.settle(taken) == 3
    assert await worker.settle(taken) == 0
    batch = [Settlement(run, datetime.now(UTC), SUCCEEDED) for run in taken]
    assert await dispatch.settled(worker.line, worker.id, batch) == {(run.id, run.fence) for run in taken}
    assert await world.count("history") == 3


async def test_what_another_worker_settled_is_not_recognised_as_ours(world: World):
    await world.submit()
    worker, other = await world.worker(), await world.worker()
    taken = await worker.claim()
    await worker.settle(taken)
    batch = [Settlement(run, datetime.now(UTC), SUCCEEDED) for run in taken]
    assert await dispatch.settled(other.line, other.id, batch) == set()


async def test_tied_runs_are_settled_like_others(world: World):
    source = await world.value("SELECT prosrc FROM pg_proc WHERE proname = 'settle_tied'")
    settle = "\n".join(line for line in SQL["settle"].splitlines() if not line.startswith("--"))
    assert settle.replace("SELECT count(*)", "SELECT count(*) INTO done") in source


async def test_a_run_is_settled_once_even_if_it_stands_twice_in_a_batch(world: World):
    await world.submit()
    worker = await world.worker()
    (run,) = await worker.claim()
    assert await worker.settle([run, run]) == 1
    assert await world.count("history") == 1


async def test_some_of_a_claim_may_be_settled_before_the_rest(world: World):
    await world.submit(3)
    worker = await world.worker()
    taken = await worker.claim()
    assert await worker.settle(taken[1:2]) == 1
    assert await worker.settle(taken) == 2


async def test_a_retry_waits_for_its_time_and_has_spent_an_attempt(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    assert await worker.conclude(await worker.claim(), AGAIN) == 1
    (row,) = await world.sql("SELECT state, attempt, due_at - now() AS wait, started_at FROM run WHERE id = $1", run)
    assert (row["state"], row["attempt"], row["started_at"]) == (State.SCHEDULED, 1, None)
    assert timedelta(minutes=4) < row["wait"] <= timedelta(minutes=5)
    assert await _history(world) == [(run, 1, Ending.FAILED, State.SCHEDULED)]
    assert await world.count("ready") == 0


async def test_a_dead_run_moves_to_the_dead_letters_whole(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    taken = await worker.claim()
    assert await worker.conclude(taken, DEAD) == 1
    (letter,) = await world.sql("SELECT id, fence, attempt, error, payload FROM dead_letter")
    assert tuple(letter) == (run, taken[0].fence, 1, "too slow", b"{}")
    assert await _history(world) == [(run, 1, Ending.TIMED_OUT, State.DEAD)]
    assert await world.count("run") == 0


async def test_a_snooze_waits_without_spending_an_attempt_and_comes_back_near_the_head(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    for _ in range(3):
        assert await worker.conclude(await worker.claim(), Outcome.snoozed(timedelta(seconds=30), "not yet")) == 1
        (row,) = await world.sql("SELECT state, attempt, due_at > now() AS waits FROM run WHERE id = $1", run)
        assert tuple(row) == (State.SCHEDULED, 0, True)
        (first,) = await world.submit()
        await world.promoter.run_once(datetime.now(UTC) + timedelta(minutes=1))
        assert await world.value("SELECT run FROM ready WHERE lane > 0 ORDER BY rank LIMIT 1") == run
        await world.sql("DELETE FROM ready WHERE run = $1", first)
    assert await _history(world) == [(run, 1, Ending.SNOOZED, State.SCHEDULED)] * 3
    assert await worker.settle(await worker.claim()) == 1


async def test_the_kind_of_an_error_is_kept_with_the_attempt_and_the_dead_letter(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    await worker.conclude(await worker.claim(), Outcome.again(Ending.FAILED, "a", timedelta(), "http:503"))
    await world.promoter.run_once()
    await worker.conclude(await worker.claim(), Outcome.dead(Ending.FAILED, "b", "ValueError"))
    kinds = await world.sql("SELECT error_class FROM history WHERE run = $1 ORDER BY finished_at", run)
    assert [row[0] for row in kinds] == ["http:503", "ValueError"]
    assert await world.value("SELECT error_class FROM dead_letter") == "ValueError"


async def test_a_run_handed_back_untouched_is_ready_again_at_the_head_and_spends_nothing(world: World):
    run, *_ = await world.submit(5)
    worker = await world.worker()
    taken = await worker.claim(1)
    assert await worker.conclude(taken, Outcome.released()) == 1
    assert await world.count("history") == 0
    (back,) = await worker.claim(1)
    assert (back.id, back.attempt) == (run, 0)
    assert back.fence > taken[0].fence


async def test_a_run_handed_back_after_it_began_leaves_a_trace_but_spends_no_attempt(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    began = [Settlement(each, datetime.now(UTC), Outcome.released()) for each in await worker.claim()]
    assert await dispatch.conclude(worker.line, worker.id, began) == 1
    assert await _history(world) == [(run, 0, Ending.RELEASED, State.READY)]
    assert (await worker.claim())[0].attempt == 0


async def test_a_cancelled_attempt_ends_its_run(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    assert await worker.conclude(await worker.claim(), Outcome.cancelled()) == 1
    assert await _history(world) == [(run, 1, Ending.CANCELLED, State.CANCELLED)]
    assert await world.count("run") == 0


async def test_how_its_run_ended_is_how_a_one_time_job_ended(world: World):
    for outcome, status in ((SUCCEEDED, "completed"), (DEAD, "failed"), (Outcome.cancelled(), "cancelled")):
        job = await world.job_id(scheduleAt="2026-01-01T00:00:00Z")
        await world.promoter.run_once()
        worker = await world.worker()
        taken = await worker.claim()
        settled = await (worker.settle(taken) if outcome is SUCCEEDED else worker.conclude(taken, outcome))
        assert settled == 1
        assert await world.status(job) == status


async def test_a_retry_does_not_end_a_one_time_job(world: World):
    job = await world.job_id(scheduleAt="2026-01-01T00:00:00Z")
    await world.promoter.run_once()
    worker = await world.worker()
    await worker.conclude(await worker.claim(), AGAIN)
    assert await world.status(job) == "pending"


async def test_a_start_is_noted_while_the_run_is_held_and_not_after(world: World):
    (run,) = await world.submit()
    worker = await world.worker()
    taken = await worker.claim()
    await worker.note_started(taken)
    started = "SELECT started_at FROM run WHERE id = $1"
    assert await world.value(started, run) is not None
    await worker.conclude(taken, Outcome.released())
    assert await world.value(started, run) is None
    await worker.note_started(taken)
    assert await world.value(started, run) is None


async def test_a_claim_is_forgotten_only_by_its_own_worker(world: World):
    await world.submit()
    worker, other = await world.worker(), await world.worker()
    (run,) = await worker.claim()
    await dispatch.forget(other.line, other.id, [run.fence])
    assert await world.count("claim") == 1
    await dispatch.forget(worker.line, worker.id, [run.fence])
    assert await world.count("claim") == 0
