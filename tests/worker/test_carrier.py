"""The way through SQL: what a lost reply leaves behind is found, also when it comes late."""

from datetime import timedelta
from functools import partial

import pytest

from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.store import dispatch
from foliot.store.database import Line
from foliot.store.dispatch import Claimed, Settlement
from foliot.worker.carrier import SqlCarrier
from foliot.worker.settler import Settler
from worker.making import NOW
from world import World

WORKER = 77


class Bench:
    """A settler on a real database, and runs in its worker's hands."""

    def __init__(self, carrier: SqlCarrier, runs: list[Claimed]) -> None:
        self.settler = Settler(carrier, self._never)
        self.runs = runs

    @staticmethod
    def _never(lost: list[Settlement]) -> None:
        raise AssertionError(lost)

    def end(self, run: Claimed, outcome: Outcome) -> None:
        self.settler.add(Settlement(run, NOW, outcome))


@pytest.fixture
async def bench(world: World, dsn: str):
    carrier = SqlCarrier(partial(Line, dsn), WORKER, "test")
    lanes = list(await carrier.register(["default"], ["fn:noop"]))
    await world.submit(20)
    yield Bench(carrier, await carrier.claim(1, lanes, [0] * len(lanes), 20, [20] * len(lanes)))
    await carrier.close()


@pytest.mark.parametrize(
    "bad",
    [Outcome.again(Ending.FAILED, "NUL \0 here", timedelta(0)), Outcome.again(Ending.FAILED, "ever", timedelta.max)],
)
async def test_an_outcome_that_the_database_cannot_keep_fails_alone(world: World, bench: Bench, bad: Outcome):
    for number, run in enumerate(bench.runs):
        bench.end(run, bad if number == 7 else SUCCEEDED if number % 2 else Outcome.dead(Ending.FAILED, "boom"))
    assert await bench.settler.run_once() == 20
    assert await world.value("SELECT count(*) FROM history") == 20
    assert await world.value("SELECT count(*) FROM history WHERE state = 4") == 9
    (row,) = await world.sql("SELECT attempt, state FROM run WHERE id > 0")
    assert tuple(row) == (1, 0)  # it is tried again, as it would have been
    error = await world.value("SELECT error FROM history WHERE run = $1", bench.runs[7].id)
    assert "could not be kept" in error


async def test_a_run_whose_row_is_locked_does_not_hold_up_the_others(world: World, bench: Bench):
    async with world.unfinished() as rival:
        await rival.execute("SELECT FROM run WHERE id = $1 FOR UPDATE", bench.runs[3].id)
        for run in bench.runs[:5]:
            bench.end(run, SUCCEEDED)
        assert await bench.settler.run_once() == 4
        bench.end(bench.runs[5], SUCCEEDED)
        assert await bench.settler.run_once() == 1
        assert bench.settler.backlog == 1
    bench.settler._try_again = 0.0
    assert await bench.settler.run_once() == 1
    assert await world.value("SELECT count(*) FROM history WHERE state = 4") == 6


async def test_a_claim_that_arrives_when_its_worker_has_gone_on_is_found(world: World, dsn: str):
    carrier, late = SqlCarrier(partial(Line, dsn), WORKER, "test"), Line(dsn)
    lanes = list(await carrier.register(["default"], ["fn:noop"]))
    marks = [0] * len(lanes)
    (first,) = await world.submit()
    (known,) = await carrier.claim(1, lanes, marks, 10, [10])
    (second,) = await world.submit()
    await dispatch.claim(late, WORKER, 2, lanes, marks, 10)  # sent before, given up, and here now
    (found,) = await carrier.strays([known.fence])
    assert (known.id, found.id) == (first, second)
    assert await carrier.strays([known.fence, found.fence]) == []
    await dispatch.claim(late, WORKER + 1, 1, lanes, marks, 10)
    assert {run.id for run in await carrier.strays([])} == {first, second}
    for each in (carrier, late):
        await each.close()
