"""Handlers under way, and when the time of each is over."""

import asyncio
from datetime import timedelta

import pytest

from foliot.worker.underway import Going, Underway
from worker.making import assignment, function_spec

LIMIT = 2.0


@pytest.fixture
async def going() -> Going:
    attempt = assignment(function_spec("noop", timeout=timedelta(seconds=LIMIT)))
    return Going(attempt, asyncio.ensure_future(asyncio.sleep(0)), 0.0, noted=False)


@pytest.mark.parametrize("grown", [False, True])
async def test_who_is_held_has_no_time_until_it_begins_and_then_all_of_it(going: Going, grown: bool):
    underway = Underway()
    underway.add(going)
    if grown:
        assert underway.grow_old(1.0) == [going]
    underway.hold(going.assignment)
    underway.hold(going.assignment)
    assert underway.grow_old(50.0) == underway.overdue(50.0) == []
    underway.extend(going.assignment, 60.0)
    underway.grow_old(61.0)
    assert underway.overdue(60.0 + LIMIT - 0.1) == []
    assert underway.overdue(60.0 + LIMIT) == [going]
    underway.remove(going.assignment)
    assert len(underway) == 0


async def test_who_ends_before_its_time_has_begun_is_gone(going: Going):
    underway = Underway()
    underway.add(going)
    underway.hold(going.assignment)
    underway.remove(going.assignment)
    underway.extend(going.assignment, 1.0)
    underway.hold(going.assignment)
    assert len(underway) == 0
    assert underway.grow_old(50.0) == underway.overdue(50.0) == []
