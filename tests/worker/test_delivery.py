"""At most once, and cut off from the database: what begins, what is stopped, and what is said of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.outcome import Ending, Failure
from foliot.domain.states import Event, State
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.fleet import Load
from foliot.worker.executor import Assignment, Executor
from foliot.worker.lineup import Waiting
from foliot.worker.process import LeaseLost, WorkerOptions, WorkerProcess
from foliot.worker.runner import Runner
from foliot.worker.starts import Starts
from worker.making import PATIENCE, Gate, MemoryCarrier, claimed, event, eventually, function_spec

ONCE = {"delivery": "atMostOnce", "max_retries": 0}
STOP = {"on_disconnect": "stop"}
OUTAGE = ConnectionError("the server went away")


class Bench:
    """A runner whose starts are told to a carrier in memory, when the test says so."""

    def __init__(self, concurrency: int = 10) -> None:
        self.ended: list[Settlement] = []
        self.now = 0.0
        self.carrier = MemoryCarrier()
        self.runner = Runner(concurrency, self.ended.append, lambda: 0.5, lambda: self.now)
        self.starts = Starts(self.carrier, self.runner)

    def add(self, executor: Executor, **policy: Any) -> Claimed:
        run = claimed()
        self.runner.add([Waiting(run, function_spec(**policy), "report", executor)])
        return run

    async def told(self) -> list[tuple[int, Ending]]:
        await eventually(lambda: not self.runner.going)
        return [(each.run.id, each.outcome.ending) for each in self.ended]


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_an_at_most_once_handler_begins_when_the_database_knows_and_not_before(bench: Bench):
    gate = Gate()
    once = [bench.add(gate.executor, **ONCE) for _ in range(3)]
    plain = bench.add(gate.executor)
    await eventually(lambda: gate.begun)
    assert gate.begun == [plain.id]
    assert bench.runner.something_to_mark.is_set()
    assert await bench.starts.run_once() == 3  # one statement for all of them
    await eventually(lambda: len(gate.begun) == 4)
    assert bench.carrier.begun == [run.id for run in once] == gate.begun[1:]
    bench.now = 1.0
    assert [run.id for run, _ in bench.runner.look()] == [plain.id]  # the others have been told of
    gate.opened.set()
    await bench.told()


async def test_what_waits_for_the_database_has_its_place_among_those_that_run():
    bench, gate = Bench(concurrency=2), Gate()
    for _ in range(3):
        bench.add(gate.executor, **ONCE)
    bench.add(gate.executor)
    assert (bench.runner.going, bench.runner.waiting) == (2, 2)
    await bench.starts.run_once()
    await eventually(lambda: len(gate.begun) == 2)
    assert (bench.runner.going, bench.runner.waiting) == (2, 2)
    gate.opened.set()
    while bench.runner.going:
        await bench.starts.run_once()
        await asyncio.sleep(0)
    assert gate.most == 2
    assert len(bench.ended) == 4


async def test_a_start_that_the_database_does_not_take_is_no_start(bench: Bench):
    gate = Gate()
    run = bench.add(gate.executor, **ONCE)
    bench.carrier.lost = {run.id}
    await bench.starts.run_once()
    assert await bench.told() == [(run.id, Ending.RELEASED)]
    assert (gate.begun, bench.ended[0].started_at) == ([], None)


async def test_a_start_whose_answer_was_lost_is_told_again(bench: Bench):
    gate = Gate()
    run = bench.add(gate.executor, **ONCE)
    bench.carrier.broken = OUTAGE
    with pytest.raises(ConnectionError):
        await bench.starts.run_once()
    assert gate.begun == []
    bench.carrier.broken = None
    await bench.starts.run_once()
    await eventually(lambda: gate.begun == [run.id])
    gate.opened.set()
    assert await bench.told() == [(run.id, Ending.COMPLETED)]


async def test_a_start_that_is_confirmed_when_the_lease_may_have_ended_is_none(bench: Bench):
    gate = Gate()
    bench.runner.hold_until(12.0)
    run = bench.add(gate.executor, **ONCE)
    bench.now = 12.0
    await bench.starts.run_once()
    assert await bench.told() == [(run.id, Ending.RELEASED)]
    assert gate.begun == []


async def test_what_waits_for_the_database_is_handed_back_by_a_worker_that_ends(bench: Bench):
    gate = Gate()
    run = bench.add(gate.executor, **ONCE)
    marks = bench.runner.to_mark()  # under way
    await asyncio.wait_for(bench.runner.finish(timedelta()), PATIENCE)
    bench.runner.noted([each for each, _ in marks], {(run.id, run.fence)})
    assert await bench.told() == [(run.id, Ending.RELEASED)]
    assert gate.begun == []


async def test_an_at_most_once_run_is_never_tried_again(bench: Bench):
    async def fail(_: Assignment) -> Failure:
        return Failure("busy", retry_after=timedelta(seconds=1))

    async def explode(_: Assignment) -> None:
        raise ConnectionError("on the way")

    for handler in (fail, explode):
        bench.add(handler, **ONCE)
    bench.add(Gate().executor, timeout=timedelta(seconds=1), **ONCE)
    await bench.starts.run_once()
    await asyncio.sleep(0)
    bench.now = 1.0
    bench.runner.look()
    await bench.told()
    assert [each.outcome.event for each in bench.ended] == [Event.DIED] * 3


async def test_how_an_at_most_once_run_ended_that_was_stopped_is_unknown(bench: Bench):
    gate = Gate()
    once, plain = bench.add(gate.executor, **ONCE), bench.add(gate.executor)
    await bench.starts.run_once()
    await eventually(lambda: len(gate.begun) == 2)
    await asyncio.wait_for(bench.runner.finish(timedelta()), PATIENCE)
    assert dict(await bench.told()) == {once.id: Ending.UNKNOWN, plain.id: Ending.RELEASED}
    (told,) = [each.outcome for each in bench.ended if each.run is once]
    assert (told.state, told.error) == (State.UNKNOWN, "stopped before it ended: its worker had to end")


async def test_a_worker_that_is_cut_off_stops_what_must_not_outlive_its_lease_and_nothing_else(bench: Bench):
    gate = Gate()
    stop, finish = bench.add(gate.executor, **STOP), bench.add(gate.executor)
    once = bench.add(gate.executor, **ONCE, **STOP)
    await event(bench.runner.something_to_mark)
    await bench.starts.run_once()
    await eventually(lambda: len(gate.begun) == 3)
    bench.runner.hold_until(12.0)
    bench.now = 11.9
    bench.runner.look()
    bench.now = 12.0
    assert not bench.ended
    bench.runner.look()
    await eventually(lambda: len(bench.ended) == 2)
    assert {each.run.id: each.outcome.ending for each in bench.ended} == {
        stop.id: Ending.RELEASED,
        once.id: Ending.UNKNOWN,
    }
    gate.opened.set()
    assert (await bench.told())[-1] == (finish.id, Ending.COMPLETED)


async def test_a_handler_whose_run_was_taken_over_is_stopped_when_that_is_noticed(bench: Bench):
    gate = Gate()
    run = bench.add(gate.executor)
    await eventually(lambda: gate.begun)
    bench.now = 1.0
    bench.starts.add(bench.runner.look())
    bench.carrier.lost = {run.id}
    await bench.starts.run_once()
    assert await bench.told() == [(run.id, Ending.RELEASED)]


class Shift:
    """A whole worker over a carrier in memory, by a clock that stands in the test's hand."""

    def __init__(self, runs: list[Claimed], executor: Executor, **policy: Any) -> None:
        self.now = 0.0
        self.carrier = MemoryCarrier(runs, function_spec(**policy))
        options = WorkerOptions(heartbeat=timedelta(milliseconds=5), grace=timedelta(), concurrency=10)
        self.process = WorkerProcess(self.carrier, lambda _: executor, options, lambda: 0.0, lambda: self.now)
        self.stop = asyncio.Event()

    @asynccontextmanager
    async def work(self) -> AsyncIterator["asyncio.Task[None]"]:
        task = asyncio.create_task(self.process.run(self.stop))
        try:
            yield task
        finally:
            self.stop.set()
            await asyncio.wait([task], timeout=PATIENCE)

    async def outage(self, seconds: float) -> None:
        """Let so much time pass while the database is away, a second at a time."""
        self.carrier.broken = OUTAGE
        for _ in range(int(seconds)):
            self.now += 1
            calls = self.carrier.calls
            await eventually(lambda calls=calls: self.carrier.calls > calls)
        self.carrier.broken = None

    def endings(self) -> dict[int, Ending]:
        return {each.run.id: each.outcome.ending for each in self.carrier.settled}


async def test_through_an_outage_of_thirty_seconds_handlers_finish_and_their_results_are_kept():
    gate, runs = Gate(), [claimed() for _ in range(3)]
    shift = Shift(list(runs), gate.executor)
    async with shift.work():
        await eventually(lambda: len(gate.begun) == 3)
        await shift.outage(30)
        assert gate.going == 3
        gate.opened.set()
        await eventually(lambda: len(shift.carrier.settled) == 3)
        shift.carrier.runs = [claimed()]  # and work goes on
        await eventually(lambda: len(shift.carrier.settled) == 4)
    assert gate.begun[:3] == [run.id for run in runs]
    assert set(shift.endings().values()) == {Ending.COMPLETED}


async def test_what_is_to_stop_is_stopped_in_an_outage_before_the_lease_ends_and_handed_back_after_it():
    gate, run = Gate(), claimed()
    shift = Shift([run], gate.executor, **STOP)
    async with shift.work():
        await eventually(lambda: gate.begun)
        await shift.outage(11)
        assert gate.going == 1
        shift.carrier.broken = OUTAGE
        shift.now += 3
        await eventually(lambda: not gate.going)
        assert shift.now < 15
        assert not shift.carrier.settled
        shift.carrier.broken = None
        await eventually(lambda: shift.carrier.settled)
    assert shift.endings() == {run.id: Ending.RELEASED}


async def test_deadlines_pass_also_while_the_database_is_away():
    gate, run = Gate(), claimed()
    shift = Shift([run], gate.executor, timeout=timedelta(seconds=20))
    async with shift.work():
        await eventually(lambda: gate.begun)
        shift.carrier.broken = OUTAGE
        shift.now = 21.0
        await eventually(lambda: not gate.going)
        shift.carrier.broken = None
        await eventually(lambda: shift.carrier.settled)
    assert shift.endings() == {run.id: Ending.TIMED_OUT}


async def test_a_worker_that_was_declared_dead_tells_what_it_did_before_it_ends():
    gate, run = Gate(), claimed()
    shift = Shift([run], gate.executor)
    settle = shift.carrier.settle

    async def settle_at_last(batch: list[Settlement]) -> list[Settlement]:
        if not shift.carrier.is_dead:
            raise OUTAGE
        return await settle(batch)

    async def die(load: Load) -> None:
        shift.carrier.is_dead = True

    shift.carrier.settle = settle_at_last
    async with shift.work() as task:
        await eventually(lambda: gate.begun)
        gate.opened.set()
        await eventually(lambda: shift.process._settler.backlog)
        shift.carrier.beat = die
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(task, PATIENCE)
    assert shift.endings() == {run.id: Ending.COMPLETED}
