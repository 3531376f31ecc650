"""The claimer: takes as much as its handlers will soon use up, and gives back what it cannot run."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.outcome import Ending
from foliot.domain.suspicion import SUSPICIOUS
from foliot.store.dispatch import LARGEST_CLAIM, Claimed
from foliot.worker.claimer import Claimer
from foliot.worker.executor import Assignment, Executor
from foliot.worker.runner import Runner
from foliot.worker.settler import Settler
from foliot.worker.shares import Shares
from worker.making import PATIENCE, Gate, MemoryCarrier, claimed, eventually, function_spec
from world import World


class Station:
    """A claimer with all that is around it; nothing runs by itself."""

    def __init__(
        self, runs: list[Claimed], executor: Executor | None, concurrency: int = 10, alone: Executor | None = None
    ) -> None:
        self.carrier = MemoryCarrier(runs)
        self.settler = Settler(self.carrier, lambda _: None)
        self.runner = Runner(concurrency, self.settler.add, lambda: 0.5)
        shares = Shares({1: "default"}, {"default": 1})
        around = (self.runner, self.settler, concurrency, lambda _: alone)
        self.claimer = Claimer(self.carrier, shares, lambda _: executor, *around)


async def test_slow_handlers_never_have_more_in_hand_than_run_at_once():
    gate = Gate()
    station = Station([claimed() for _ in range(100)], gate.executor)
    for _ in range(20):
        await station.claimer.run_once()
        await asyncio.sleep(0)
    assert len(gate.begun) == 10
    assert station.runner.waiting == 0
    assert len(station.carrier.runs) == 90
    gate.opened.set()
    await eventually(lambda: not station.runner.going)


async def test_suspects_that_wait_for_each_other_keep_nobody_else_from_being_claimed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("foliot.worker.claimer.MOST_IN_HAND", 60)
    gate, cell = Gate(), Gate()
    suspects, others = [claimed(deaths=SUSPICIOUS) for _ in range(30)], [claimed() for _ in range(100)]
    station = Station([*suspects, *others], gate.executor, alone=cell.executor)
    for _ in range(20):
        await station.claimer.run_once()
        await asyncio.sleep(0)
    assert len(gate.begun) == 5  # the other half of the handlers is for suspects
    assert station.runner.waiting <= 60


async def test_a_claim_waits_only_where_the_last_one_left_nothing():
    gate, patience = Gate(), timedelta(milliseconds=20)
    station = Station([claimed() for _ in range(15)], gate.executor, concurrency=10)
    gate.opened.set()
    for _ in range(3):
        await station.claimer.run_once(patience)
        await eventually(lambda: not station.runner.going and not station.runner.waiting)
        await station.settler.run_once()
    assert [most > taken for most, taken in zip(station.carrier.asked, (10, 5, 0), strict=True)] == [False, True, True]
    assert station.carrier.patience == [timedelta(), timedelta(), patience]


async def test_quick_handlers_get_more_ahead_but_never_without_bound():
    async def succeed(_: Assignment) -> None:
        await asyncio.sleep(0)

    station = Station([claimed() for _ in range(5_000)], succeed)
    async with asyncio.timeout(PATIENCE):
        while station.carrier.runs:
            await station.claimer.run_once()
            await asyncio.sleep(0)
            await station.settler.run_once()
            assert station.runner.going + station.runner.waiting + station.settler.backlog <= 6_000
    assert max(station.carrier.asked) <= LARGEST_CLAIM
    assert max(station.carrier.asked) > 10
    await eventually(lambda: not station.runner.going)
    while not station.settler.empty:
        await station.settler.run_once()
    assert len({each.run.id for each in station.carrier.settled}) == 5_000


async def test_nobody_asks_for_few_while_many_wait_already():
    """A claim for few costs as much as one for many."""

    async def succeed(_: Assignment) -> None:
        await asyncio.sleep(0)

    station = Station([claimed() for _ in range(5_000)], succeed)
    asked: list[tuple[int, int]] = []

    async def claim(number: int, lanes: list[int], marks: list[int], most: int, *others: Any) -> list[Claimed]:
        asked.append((most, station.runner.going + station.runner.waiting - 10))
        return await MemoryCarrier.claim(station.carrier, number, lanes, marks, most, *others)

    station.carrier.claim = claim
    async with asyncio.timeout(PATIENCE):
        while station.carrier.runs:
            await station.claimer.run_once()
            await asyncio.sleep(0)
    assert all(most >= queued for most, queued in asked)
    assert any(queued > 0 for _, queued in asked)
    await eventually(lambda: not station.runner.going)


async def test_more_handlers_at_once_than_are_usually_in_hand_are_all_kept_busy():
    gate = Gate()
    station = Station([claimed() for _ in range(8_000)], gate.executor, concurrency=7_000)
    for _ in range(20):
        await station.claimer.run_once()
        await asyncio.sleep(0)
    await eventually(lambda: len(gate.begun) == 7_000)
    assert len(station.carrier.runs) == 1_000
    gate.opened.set()
    await eventually(lambda: not station.runner.going)


async def test_what_was_claimed_in_our_name_without_our_knowing_is_run():
    gate = Gate()
    station = Station([], gate.executor)
    await station.claimer.run_once()
    stray = claimed()
    station.carrier.stray = [stray]
    await station.claimer.run_once()
    assert gate.begun == []  # it is looked for now and then
    station.carrier.broken = ConnectionResetError("the connection broke")
    with pytest.raises(ConnectionResetError):
        await station.claimer.run_once()
    station.carrier.broken = None
    assert await station.claimer.run_once() == 1  # and at once when a reply was lost
    await asyncio.sleep(0)
    assert gate.begun == [stray.id]
    assert station.settler.fences == [stray.fence]
    gate.opened.set()
    await eventually(lambda: not station.runner.going)


async def test_who_has_nothing_to_claim_looks_for_what_fell_due_but_not_all_the_time():
    gate = Gate()
    station = Station([claimed()], gate.executor)
    await station.claimer.run_once()
    assert station.carrier.promoted == 0
    for _ in range(20):
        await station.claimer.run_once()
    assert station.carrier.promoted == 1
    gate.opened.set()
    await eventually(lambda: not station.runner.going)


async def test_a_backlog_of_outcomes_stops_the_claiming():
    """When the database takes no results, more work would only pile up."""

    async def succeed(_: Assignment) -> None:
        await asyncio.sleep(0)

    station = Station([claimed() for _ in range(100_000)], succeed)
    for _ in range(200):
        await station.claimer.run_once()
        await asyncio.sleep(0)
    await eventually(lambda: not station.runner.going)
    assert station.settler.backlog <= 6_000


async def test_what_this_worker_has_no_handler_for_is_handed_back():
    runs = [claimed() for _ in range(3)]
    station = Station(list(runs), None)
    await station.claimer.run_once()
    await station.settler.run_once()
    assert [each.run for each in station.carrier.settled] == runs
    assert all(each.outcome.ending is Ending.RELEASED for each in station.carrier.settled)
    assert station.carrier.forgotten == [7]


async def test_runs_whose_spec_could_not_be_fetched_are_handed_back():
    station = Station([claimed(), claimed()], Gate().executor)
    original = station.carrier.specs

    async def unreachable(_: object) -> None:
        raise ConnectionError("the server went away")

    station.carrier.specs = unreachable
    with pytest.raises(ConnectionError):
        await station.claimer.run_once()
    station.carrier.specs = original
    await station.settler.run_once()
    assert [each.outcome.ending for each in station.carrier.settled] == [Ending.RELEASED] * 2


async def test_job_names_reach_the_handler():
    names: list[str] = []

    async def note(assignment: Assignment) -> None:
        names.append(assignment.name)

    station = Station([claimed(job=5), claimed()], note)
    await station.claimer.run_once()
    await eventually(lambda: len(names) == 2)
    assert names == ["job 5", "noop"]


async def test_a_worker_cannot_even_claim_what_it_does_not_serve(world: World):
    """So a run that nobody serves waits, instead of being passed round."""
    await world.submit(3, function_spec("theirs"))
    await world.submit(2, function_spec("theirs", queue="other"))
    assert await (await world.worker("mine")).claim() == []
    assert len(await (await world.worker("theirs")).claim()) == 3
