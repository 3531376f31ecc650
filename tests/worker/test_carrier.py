"""The way through SQL: what a lost reply leaves behind is found, also when it comes late."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from foliot.store import dispatch
from foliot.store.database import Line
from foliot.worker.carrier import SqlCarrier
from world import World

WORKER = 77


class BrittleLine(Line):
    """Breaks under the next statement of that name, before it is sent."""

    breaks_at = ""

    async def fetch(self, name: str, *arguments: Any) -> list[Any]:
        if name == self.breaks_at:
            self.breaks_at = ""
            raise ConnectionResetError("the connection broke")
        return await super().fetch(name, *arguments)


@pytest.fixture
async def lines() -> list[BrittleLine]:
    return []


@pytest.fixture
async def carrier(dsn: str, lines: list[BrittleLine]) -> AsyncIterator[SqlCarrier]:
    def line(**settings: str) -> Line:
        lines.append(BrittleLine(dsn, **settings))
        return lines[-1]

    made = SqlCarrier(line, WORKER, "test")
    yield made
    await made.close()


async def test_a_claim_that_arrives_after_its_connection_broke_is_taken_up(
    world: World, dsn: str, carrier: SqlCarrier, lines: list[BrittleLine]
):
    lanes = await carrier.register(["default"], ["fn:noop"])
    claim = partial(carrier.claim, 1, lanes, [0] * len(lanes), 10)
    lines[0].breaks_at = "claim"
    with pytest.raises(ConnectionResetError):
        await claim()
    assert await claim() == []  # nothing was there, and nothing has happened yet
    (run,) = await world.submit()
    late = Line(dsn)
    (taken,) = await dispatch.claim(late, WORKER, 1, lanes, [0] * len(lanes), 10)  # now it arrives
    await late.close()
    assert [each.id for each in await claim()] == [taken.id] == [run]
    assert await carrier.claim(2, lanes, [0] * len(lanes), 10) == []


async def test_a_claim_that_arrives_after_its_number_was_used_takes_nothing(
    world: World, dsn: str, carrier: SqlCarrier, lines: list[BrittleLine]
):
    lanes = await carrier.register(["default"], ["fn:noop"])
    lines[0].breaks_at = "claim"
    with pytest.raises(ConnectionResetError):
        await carrier.claim(1, lanes, [0] * len(lanes), 10)
    (first,) = await world.submit()
    assert [each.id for each in await carrier.claim(1, lanes, [0] * len(lanes), 10)] == [first]
    (second,) = await world.submit()
    late = Line(dsn)
    again = await dispatch.claim(late, WORKER, 1, lanes, [0] * len(lanes), 10)
    await late.close()
    assert [each.id for each in again] == [first]  # what the number took, and no more
    assert [each.id for each in await carrier.claim(2, lanes, [0] * len(lanes), 10)] == [second]
