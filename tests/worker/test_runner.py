"""The runner: how many at once, how long, and what becomes of those that are stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.domain.errorclass import RetryRule
from foliot.domain.outcome import Ending, Failure, Outcome, Snoozed
from foliot.domain.redaction import Redaction
from foliot.domain.states import Event
from foliot.store.dispatch import Claimed, Settlement
from foliot.worker import runner as runner_module
from foliot.worker.executor import Assignment, Executor
from foliot.worker.lineup import MOST_ALONE, Waiting, alone_at_once
from foliot.worker.runner import LAST_WORDS, Runner
from worker.making import PATIENCE, Gate, claimed, event, eventually, function_spec

Handler = Callable[[Assignment], Awaitable[Failure | None]]


class Bench:
    """A runner and what it tells."""

    def __init__(self, concurrency: int = 10) -> None:
        self.ended: list[Settlement] = []
        self._passed = 0.0
        hidden = Redaction(["swordfish"])
        self.runner = Runner(concurrency, self.ended.append, lambda: 0.5, lambda: self._passed, redaction=hidden)

    def add(self, executor: Executor, run: Claimed | None = None, *, alone: bool = False, **policy: Any) -> Claimed:
        run = run or claimed()
        waiting = Waiting(run, function_spec(**policy), "report", executor)
        if alone:
            self.runner.add_suspect(waiting)
        else:
            self.runner.add([waiting])
        self._mark()
        return run

    def _mark(self) -> None:
        """As if the database had been told of what waits for that."""
        marked = [run for run, _ in self.runner.to_mark()]
        self.runner.noted(marked, {(run.id, run.fence) for run in marked})

    def _is_idle(self) -> bool:
        self._mark()
        return not self.runner.going and not self.runner.waiting

    async def idle(self) -> None:
        await eventually(self._is_idle)

    def pass_time(self, by: timedelta) -> list[tuple[Claimed, datetime]]:
        self._passed += by.total_seconds()
        return self.runner.look()


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def succeed(_: Assignment) -> None:
    await asyncio.sleep(0)


async def test_no_more_run_at_once_than_agreed_and_all_run_in_turn():
    bench, gate = Bench(concurrency=3), Gate()
    added = [bench.add(gate.executor).id for _ in range(10)]
    await eventually(lambda: len(gate.begun) == 3)
    assert (bench.runner.going, bench.runner.waiting) == (3, 7)
    gate.opened.set()
    await bench.idle()
    assert gate.most == 3
    assert gate.begun == added
    assert sorted(each.run.id for each in bench.ended) == sorted(added)


async def test_slow_handlers_do_not_keep_quick_ones_waiting():
    bench, gate = Bench(concurrency=2), Gate()
    bench.add(gate.executor)
    quick = [bench.add(succeed).id for _ in range(50)]
    await eventually(lambda: len(bench.ended) == 50)
    assert [each.run.id for each in bench.ended] == quick
    assert bench.runner.going == 1
    gate.opened.set()
    await bench.idle()


async def test_every_attempt_is_told_once_with_its_outcome(bench: Bench):
    async def fail(_: Assignment) -> Failure:
        return Failure("it broke")

    async def explode(_: Assignment) -> None:
        raise RuntimeError("the executor itself broke")

    async def refuse(_: Assignment) -> Failure:
        return Failure("no use", permanent=True)

    runs = {handler: bench.add(handler) for handler in (succeed, fail, explode, refuse)}
    await bench.idle()
    told = {each.run.id: each.outcome for each in bench.ended}
    assert len(bench.ended) == len(told) == 4
    assert told[runs[succeed].id].event is Event.SUCCEEDED
    assert (told[runs[fail].id].event, told[runs[fail].id].error) == (Event.RETRIED, "it broke")
    assert told[runs[explode].id].event is Event.RETRIED
    assert "the executor itself broke" in told[runs[explode].id].error
    assert told[runs[refuse].id].event is Event.DIED


async def test_the_last_retry_ends_in_a_dead_letter(bench: Bench):
    async def fail(_: Assignment) -> Failure:
        return Failure("it broke")

    last = bench.add(fail, claimed(attempt=3), max_retries=3)
    before = bench.add(fail, claimed(attempt=2), max_retries=3)
    spared = bench.add(fail, claimed(attempt=3, deaths=1), max_retries=3)  # a worker's death is not its fault
    await bench.idle()
    events = {each.run.id: each.outcome.event for each in bench.ended}
    assert events == {last.id: Event.DIED, before.id: Event.RETRIED, spared.id: Event.RETRIED}


async def test_a_replayed_run_has_all_its_retries_again(bench: Bench):
    async def fail(_: Assignment) -> Failure:
        return Failure("it broke")

    first = bench.add(fail, claimed(attempt=4, forgiven=4), max_retries=2)
    second = bench.add(fail, claimed(attempt=5, forgiven=4), max_retries=2)
    spared = bench.add(fail, claimed(attempt=6, forgiven=4, deaths=1), max_retries=2)
    last = bench.add(fail, claimed(attempt=6, forgiven=4), max_retries=2)
    await bench.idle()
    events = {each.run.id: each.outcome.event for each in bench.ended}
    again = dict.fromkeys((first.id, second.id, spared.id), Event.RETRIED)
    assert events == {**again, last.id: Event.DIED}


async def test_a_snooze_spends_nothing_and_a_rule_speaks_of_kinds(bench: Bench):
    async def snooze(_: Assignment) -> Snoozed:
        return Snoozed(timedelta(minutes=5), "not\0yet")

    async def refuse(_: Assignment) -> Failure:
        return Failure("no", classes=("ValueError", "Exception"))

    later = bench.add(snooze, claimed(attempt=3), max_retries=0)
    never = bench.add(refuse, retry=(RetryRule(("ValueError",), never=True),))
    await bench.idle()
    told = {each.run.id: each.outcome for each in bench.ended}
    assert (told[later.id].event, told[later.id].delay) == (Event.SNOOZED, timedelta(minutes=5))
    assert "\0" not in told[later.id].error
    assert (told[never.id].event, told[never.id].error_class) == (Event.DIED, "ValueError")


@pytest.mark.parametrize(("concurrency", "few"), [(2, 1), (10, 5), (100, MOST_ALONE)])
async def test_few_run_alone_at_once_and_nobody_waits_for_them(concurrency: int, few: int):
    bench, suspects, others = Bench(concurrency), Gate(), Gate()
    for _ in range(3 * few):
        bench.add(suspects.executor, claimed(deaths=2), alone=True)
    for _ in range(2 * concurrency):
        bench.add(others.executor)
    await eventually(lambda: len(others.begun) == concurrency - few)
    assert bench.runner.waiting == 3 * few + concurrency
    others.opened.set()
    await eventually(lambda: len(others.begun) == 2 * concurrency)
    suspects.opened.set()
    await bench.idle()
    assert suspects.most == few
    assert len(bench.ended) == 3 * few + 2 * concurrency


def test_whoever_has_one_handler_runs_its_suspects_too():
    assert alone_at_once(1) == 1


async def test_suspects_that_wait_are_handed_back_too():
    bench, gate = Bench(), Gate()
    for _ in range(alone_at_once(10) + 2):
        bench.add(gate.executor, claimed(deaths=2), alone=True)
    bench.runner.hand_back_waiting()
    assert [each.outcome.ending for each in bench.ended] == [Ending.RELEASED] * 2
    gate.opened.set()
    await bench.idle()


async def test_what_is_lost_is_tried_again_without_a_retry_and_what_stood_still_is_handed_back(bench: Bench):
    async def lose(_: Assignment) -> Failure:
        return Failure("killed by SIGSEGV", ending=Ending.LOST)

    async def lapse(_: Assignment) -> Failure:
        return Failure("stood still", ending=Ending.RELEASED)

    lost = bench.add(lose, claimed(attempt=3, deaths=2), max_retries=0)
    lapsed = bench.add(lapse, max_retries=0)
    await bench.idle()
    told = {each.run.id: each.outcome for each in bench.ended}
    assert (told[lost.id].ending, told[lost.id].event) == (Ending.LOST, Event.RETRIED)
    assert told[lapsed.id] == Outcome.released()


async def test_what_is_past_its_deadline_is_stopped_and_tried_again(bench: Bench):
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(_: Assignment) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    bench.add(hang, timeout=timedelta(seconds=5))
    await event(begun)
    bench.pass_time(timedelta(seconds=4.9))
    assert not bench.ended
    bench.pass_time(timedelta(seconds=5))
    await bench.idle()
    assert cancelled.is_set()
    (told,) = bench.ended
    assert (told.outcome.ending, told.outcome.event) == (Ending.TIMED_OUT, Event.RETRIED)
    assert told.outcome.error == "timed out after 5 s"


async def test_time_that_passes_before_the_first_step_does_not_count(bench: Bench):
    gate = Gate()
    bench.add(gate.executor, timeout=timedelta(seconds=5))
    bench.pass_time(timedelta(seconds=6))
    await eventually(lambda: gate.begun)
    bench.pass_time(timedelta(seconds=4))
    gate.opened.set()
    await bench.idle()
    assert [each.outcome.ending for each in bench.ended] == [Ending.COMPLETED]


async def test_what_is_stopped_before_its_first_step_is_told_like_any(bench: Bench):
    bench.add(Gate().executor, claimed(attempt=1, deaths=1), timeout=timedelta(seconds=5))
    bench.pass_time(timedelta(seconds=6))
    await bench.idle()
    assert [each.outcome.ending for each in bench.ended] == [Ending.TIMED_OUT]


async def test_a_handler_that_answers_its_time_out_with_an_error_has_timed_out_all_the_same(bench: Bench):
    async def complain(_: Assignment) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("I was interrupted") from None

    async def report(_: Assignment) -> Failure | None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Failure("I was interrupted", permanent=True)
        return None

    for handler in (complain, report):
        bench.add(handler, timeout=timedelta(seconds=5))
    await eventually(lambda: bench.runner.going == 2)
    await asyncio.sleep(0)
    bench.pass_time(timedelta(seconds=6))
    await bench.idle()
    assert [each.outcome.ending for each in bench.ended] == [Ending.TIMED_OUT] * 2
    assert [each.outcome.event for each in bench.ended] == [Event.RETRIED] * 2


async def test_cleaning_up_after_a_time_out_is_not_interrupted_again(bench: Bench):
    cleaned, may_clean = asyncio.Event(), asyncio.Event()

    async def tidy(_: Assignment) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await may_clean.wait()
            cleaned.set()

    bench.add(tidy, timeout=timedelta(seconds=1))
    await eventually(lambda: bench.runner.going)
    await asyncio.sleep(0)
    for _ in range(3):
        bench.pass_time(timedelta(seconds=1))
        await asyncio.sleep(0)
    may_clean.set()
    await bench.idle()
    assert cleaned.is_set()


async def test_a_handler_that_cancels_itself_has_failed(bench: Bench):
    async def give_up(_: Assignment) -> None:
        raise asyncio.CancelledError

    bench.add(give_up)
    await bench.idle()
    (told,) = bench.ended
    assert (told.outcome.event, told.outcome.error) == (Event.RETRIED, "the handler cancelled itself")


async def test_only_what_goes_on_for_a_blink_is_noted_and_once(bench: Bench):
    gate = Gate()
    run = bench.add(gate.executor)
    await eventually(lambda: bench.runner.going)
    assert bench.runner.look() == []
    assert [noted.id for noted, _ in bench.pass_time(timedelta(seconds=1))] == [run.id]
    assert bench.pass_time(timedelta(seconds=2)) == []
    gate.opened.set()
    await bench.idle()


async def test_finishing_waits_for_what_runs_and_hands_back_what_has_not_begun():
    bench, gate = Bench(concurrency=1), Gate()
    first, second = bench.add(gate.executor), bench.add(gate.executor)
    await eventually(lambda: gate.begun)
    finishing = asyncio.ensure_future(bench.runner.finish(timedelta(seconds=PATIENCE)))
    await eventually(lambda: bench.ended)
    (told,) = bench.ended
    assert (told.run.id, told.outcome.ending, told.started_at) == (second.id, Ending.RELEASED, None)
    gate.opened.set()
    await finishing
    assert (bench.ended[1].run.id, bench.ended[1].outcome.ending) == (first.id, Ending.COMPLETED)
    assert gate.begun == [first.id]


async def test_what_overstays_the_grace_period_is_handed_back():
    bench, gate = Bench(), Gate()
    bench.add(gate.executor)
    await eventually(lambda: gate.begun)
    await asyncio.wait_for(bench.runner.finish(timedelta(milliseconds=1)), PATIENCE)
    (told,) = bench.ended
    assert told.outcome.ending is Ending.RELEASED
    assert told.started_at is not None


async def test_a_handler_that_does_not_heed_its_end_cannot_keep_the_worker(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runner_module, "LAST_WORDS", timedelta(milliseconds=1))
    bench, begun, let_go = Bench(), asyncio.Event(), asyncio.Event()

    async def stubborn(_: Assignment) -> None:
        begun.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    bench.add(stubborn)
    await event(begun)
    await asyncio.wait_for(bench.runner.finish(timedelta(milliseconds=1)), PATIENCE)
    assert bench.runner.going == 1
    let_go.set()
    await bench.idle()


@pytest.mark.parametrize("late", [True, False])
async def test_a_place_is_free_again_though_its_handler_does_not_heed_its_end(*, late: bool):
    bench, begun, let_go = Bench(concurrency=1), asyncio.Event(), asyncio.Event()

    async def stubborn(_: Assignment) -> None:
        begun.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    run = bench.add(stubborn, timeout=timedelta(seconds=1 if late else 300))
    await event(begun)
    if late:
        bench.pass_time(timedelta(seconds=2))
        bench.pass_time(timedelta(seconds=2))
    else:
        bench.runner.cancel({run.id})
    bench.pass_time(LAST_WORDS)
    assert [each.outcome.ending for each in bench.ended] == [Ending.TIMED_OUT if late else Ending.CANCELLED]
    bench.add(succeed)
    await bench.idle()
    let_go.set()
    await eventually(lambda: bench.runner._underway.told_to_stop(run) is None)
    assert len(bench.ended) == 2


async def test_abandoning_stops_everything_and_starts_nothing_more():
    bench, gate = Bench(concurrency=1), Gate()
    bench.add(gate.executor)
    bench.add(gate.executor)
    await eventually(lambda: gate.begun)
    bench.runner.abandon()
    await bench.idle()
    assert len(gate.begun) == 1


async def test_an_error_that_the_database_could_not_keep_is_made_fit(bench: Bench):
    """A NUL or half a surrogate pair in an error would otherwise stop the settler, and with it the worker."""

    async def fail(_: Assignment) -> Failure:
        return Failure("NUL \0, half a pair \udcff, and all is well: ü🏦")

    bench.add(fail)
    await bench.idle()
    error = bench.ended[0].outcome.error
    assert error == "NUL \N{REPLACEMENT CHARACTER}, half a pair ?, and all is well: ü🏦"


async def test_a_wall_clock_that_is_set_forward_times_nothing_out(bench: Bench, monkeypatch):
    gate = Gate()
    bench.add(gate.executor, timeout=timedelta(minutes=5))

    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=1)

    monkeypatch.setattr(runner_module, "datetime", Ahead)
    bench.pass_time(timedelta(seconds=10))
    gate.opened.set()
    await bench.idle()
    assert [told.outcome.event for told in bench.ended] == [Event.SUCCEEDED]


async def test_each_is_stopped_at_its_own_deadline_whatever_began_before_it(bench: Bench):
    gate = Gate()
    patient, quick = bench.add(gate.executor, timeout=timedelta(minutes=1)), None
    quick = bench.add(gate.executor, timeout=timedelta(seconds=1))
    await eventually(lambda: bench.runner.going == 2)
    bench.pass_time(timedelta(seconds=2))
    await eventually(lambda: bench.ended)
    assert [(each.run.id, each.outcome.ending) for each in bench.ended] == [(quick.id, Ending.TIMED_OUT)]
    bench.pass_time(timedelta(seconds=50))
    assert len(bench.ended) == 1
    gate.opened.set()
    await bench.idle()
    assert bench.ended[1].run.id == patient.id


# Handlers that wait for nothing


async def test_a_handler_that_waits_has_a_task_of_its_own_and_nobody_waits_for_it(bench: Bench):
    tasks, gate = {}, Gate()

    async def wait(assignment: Assignment) -> None:
        tasks[assignment.run.id] = asyncio.current_task()
        await gate.opened.wait()
        assert tasks[assignment.run.id] is asyncio.current_task()

    async def quick(assignment: Assignment) -> None:
        tasks[assignment.run.id] = asyncio.current_task()

    waits = [bench.add(wait).id for _ in range(3)]
    quicks = [bench.add(quick).id for _ in range(3)]
    await eventually(lambda: len(bench.ended) == 3)
    assert [each.run.id for each in bench.ended] == quicks
    assert len({tasks[run] for run in waits}) == 3
    assert not {tasks[run] for run in waits} & {tasks[run] for run in quicks}
    gate.opened.set()
    await bench.idle()


async def test_what_a_handler_leaves_in_its_context_is_not_seen_by_the_next(bench: Bench):
    variable, seen = ContextVar("variable", default="clean"), []

    async def leave(_: Assignment) -> None:
        seen.append(variable.get())
        variable.set("soiled")

    async def leave_later(assignment: Assignment) -> None:
        await asyncio.sleep(0)
        await leave(assignment)

    for executor in (leave, leave, leave_later, leave, leave_later, leave):
        bench.add(executor)
    await bench.idle()
    assert seen == ["clean"] * 6


async def test_a_handler_that_asks_for_its_own_end_and_does_not_wait_for_it_ends_nobody_else(bench: Bench):
    async def cancel(_: Assignment) -> None:
        asyncio.current_task().cancel()

    async def wait(_: Assignment) -> None:
        await asyncio.sleep(0)

    for executor in (cancel, wait, cancel, wait):
        bench.add(executor)
    await bench.idle()
    assert [each.outcome.event for each in bench.ended] == [Event.SUCCEEDED] * 4


async def test_quick_handlers_let_others_have_their_turn(bench: Bench):
    """However many follow each other: else no heartbeat would get through."""
    order = []

    async def take(_: Assignment) -> None:
        order.append("handler")
        bench._passed += 0.0015

    for _ in range(6):
        bench.add(take)
    while len(bench.ended) < 6:
        await asyncio.sleep(0)
        order.append("other")
    assert "".join(each[0] for each in order) == "hhohhohho"


async def test_nothing_begins_once_the_lease_has_ended_in_the_middle_of_a_turn(bench: Bench):
    async def take(_: Assignment) -> None:
        bench._passed += 1

    bench.runner.hold_until(2.5)
    for _ in range(5):
        bench.add(take)
    await eventually(lambda: len(bench.ended) == 3)
    assert bench.runner.waiting == 2
    bench.runner.hold_until(100)
    await bench.idle()
    assert len(bench.ended) == 5


async def test_secrets_that_a_handler_tells_in_its_errors_are_not_kept(bench: Bench):
    async def telling(_: Assignment) -> Failure:
        return Failure("cannot connect to postgresql://foliot:swordfish@db")

    async def raising(_: Assignment) -> None:
        raise ValueError("swordfish")

    for executor in (telling, raising):
        bench.add(executor)
    await bench.idle()
    assert [("swordfish" in each.outcome.error, "[secret]" in each.outcome.error) for each in bench.ended] == [
        (False, True)
    ] * 2
