"""The settler: outcomes are kept until they are on record, and each is told once."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.kit import telemetry
from foliot.store.dispatch import Settlement
from foliot.worker.process import WorkerOptions, WorkerProcess
from foliot.worker.settler import FEW_TIED, LARGEST_BATCH, TRY_AGAIN, Settler
from worker.making import NOW, PATIENCE, MemoryCarrier, claimed


def ended(count: int = 1, fence: int = 7) -> list[Settlement]:
    return [Settlement(claimed(fence=fence), NOW, SUCCEEDED) for _ in range(count)]


class Desk:
    def __init__(self) -> None:
        self.carrier = MemoryCarrier()
        self.lost: list[Settlement] = []
        self.settler = Settler(self.carrier, self.lost.extend)

    def add(self, settlements: list[Settlement]) -> None:
        for each in settlements:
            self.settler.add(each)


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_what_ended_is_settled_in_one_batch_and_its_claim_forgotten(desk: Desk):
    desk.settler.expect(7, 3)
    batch = ended(3)
    desk.add(batch[:2])
    assert await desk.settler.run_once() == 2
    assert desk.carrier.forgotten == []
    desk.add(batch[2:])
    assert await desk.settler.run_once() == 1
    assert desk.carrier.settled == batch
    assert desk.carrier.forgotten == [7]
    assert desk.settler.empty
    assert desk.settler.settled == 3


async def test_tied_runs_that_all_end_together_are_settled_in_two_halves_from_then_on(desk: Desk):
    half = FEW_TIED
    batch = [Settlement(claimed(fence=7, tied=True), NOW, SUCCEEDED) for _ in range(6 * half)]
    desk.settler.expect(7, len(batch))
    sizes = []
    for coming in (2 * half, 0, half, half, 2 * half, 0):
        desk.add(batch[:coming])
        del batch[:coming]
        sizes.append(await desk.settler.run_once())
    assert sizes == [half] * 6
    assert desk.carrier.forgotten == [7]


async def test_outcomes_are_kept_through_an_outage(desk: Desk):
    desk.settler.expect(7, 5)
    batch = ended(5)
    desk.add(batch)
    desk.carrier.broken = ConnectionError("the server went away")
    for _ in range(3):
        with pytest.raises(ConnectionError):
            await desk.settler.run_once()
    assert desk.settler.backlog == 5
    assert not desk.settler.empty
    desk.carrier.broken = None
    assert await desk.settler.run_once() == 5
    assert desk.carrier.settled == batch


async def test_a_settle_whose_reply_was_lost_is_repeated_without_doubling(desk: Desk):
    desk.settler.expect(7, 2)
    batch = ended(2)
    desk.add(batch)
    desk.carrier.reply_is_lost = True
    with pytest.raises(ConnectionResetError):
        await desk.settler.run_once()
    assert await desk.settler.run_once() == 2
    assert desk.carrier.settled == batch
    assert desk.lost == []
    assert desk.settler.settled == 2
    assert desk.carrier.forgotten == [7]


async def test_results_that_came_too_late_are_reported(desk: Desk):
    desk.settler.expect(7, 2)
    mine, gone = ended(2)
    desk.carrier.lost = {gone.run.id}
    desk.add([mine, gone])
    await desk.settler.run_once()
    assert desk.lost == [gone]
    assert desk.carrier.settled == [mine]
    assert desk.settler.empty


async def test_what_ends_during_a_settle_waits_for_the_next(desk: Desk):
    late = ended()
    original = desk.carrier.settle

    async def settle_slowly(batch):
        desk.add(late)
        return await original(batch)

    desk.carrier.settle = settle_slowly
    first = ended()
    desk.add(first)
    await desk.settler.run_once()
    assert desk.carrier.settled == first
    assert desk.settler.something.is_set()
    desk.carrier.settle = original
    await desk.settler.run_once()
    assert desk.carrier.settled == first + late


async def test_a_long_backlog_is_settled_in_bounded_batches(desk: Desk):
    desk.add(ended(LARGEST_BATCH + 1))
    assert await desk.settler.run_once() == LARGEST_BATCH
    assert await desk.settler.run_once() == 1


async def test_drained_means_on_record_and_forgotten(desk: Desk):
    desk.settler.expect(7, 1)
    desk.add(ended())
    waiting = asyncio.ensure_future(desk.settler.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    await desk.settler.run_once()
    await asyncio.wait_for(waiting, PATIENCE)


class RefusedError(Exception):
    """What the database says to an outcome that it cannot keep."""


async def test_one_outcome_that_cannot_be_kept_is_recorded_in_other_words_and_the_rest_as_they_are(desk: Desk):
    batch = [
        msgspec.structs.replace(each, outcome=Outcome.again(Ending.FAILED, "boom", timedelta(seconds=9)))
        for each in ended(100)
    ]
    bad = batch[37] = msgspec.structs.replace(
        batch[37], outcome=msgspec.structs.replace(batch[37].outcome, error="unspeakable")
    )
    desk.carrier.refuses = lambda each: RefusedError() if each.outcome.error == "unspeakable" else None
    desk.add(batch)
    assert await desk.settler.run_once() == 100
    told = {each.run.id: each for each in desk.carrier.settled}
    instead = told.pop(bad.run.id)
    assert [*told.values()] == [each for each in batch if each is not bad]
    assert "RefusedError" in instead.outcome.error
    assert (instead.outcome.event, instead.outcome.delay) == (bad.outcome.event, bad.outcome.delay)
    assert desk.carrier.calls < 30  # half by half, not one by one
    assert desk.settler.empty


async def test_what_cannot_be_recorded_at_all_is_set_aside_and_tried_again(desk: Desk):
    desk.settler.expect(7, 4)
    batch = ended(4)
    desk.carrier.refuses = lambda each: RefusedError() if each is batch[1] else None
    desk.add(batch)
    assert await desk.settler.run_once() == 3
    assert (desk.settler.backlog, desk.settler.rest) == (1, TRY_AGAIN)
    desk.add(ended(5, fence=8))
    asked = desk.carrier.calls
    assert await desk.settler.run_once() == 5
    assert desk.carrier.calls == asked + 1  # it is not in the way of the others any more
    desk.carrier.refuses = lambda _: None
    desk.settler._try_again = 0.0
    assert await desk.settler.run_once() == 1
    assert [each.run.id for each in desk.carrier.settled if each in batch] == [
        batch[number].run.id for number in (0, 2, 3, 1)
    ]
    assert desk.settler.rest is None
    assert desk.settler.empty
    assert desk.carrier.forgotten == [7]


def late_results() -> float:
    return next(
        sample.value
        for metric in telemetry.LATE_RESULTS.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    )


async def test_what_was_only_handed_back_is_no_late_result():
    process = WorkerProcess(MemoryCarrier(), lambda _: None, WorkerOptions())
    before = late_results()
    process._say_lost([Settlement(claimed(), None, Outcome.released())])
    assert late_results() == before
    process._say_lost(ended(2))
    assert late_results() == before + 2
