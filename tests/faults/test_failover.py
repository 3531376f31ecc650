"""The primary is gone for good, a standby takes its place: handlers survive it, and nothing is lost or done twice."""

import asyncio
import time

import pytest

from faults.machine import machine, until
from faults.standby import either, promote, standby_of, wait_for_both
from faults.story import report, story
from foliot.kit.postgres import PostgresServer
from foliot.store.fleet import LEASE
from kit.launching import fresh_home

PROMISED = 30.0
"""Seconds from the end of the primary to new work being done (M55)."""
EACH, LONG = 100, 12.0


@pytest.mark.timeout(180)
async def test_handlers_survive_a_fail_over_and_what_was_acknowledged_is_done_once():
    with fresh_home() as home, PostgresServer(home) as primary, standby_of(primary, home) as standby:
        await wait_for_both(primary)
        with machine(FOLIOT_DATABASE_URL=either(primary, standby)) as up:
            async with story(up) as told:
                await told.submit(EACH, LONG)
                await until(lambda: told.begun() == EACH, what="all handlers under way")
                worker = up.pid("worker")
                await told.submit(EACH)
                await asyncio.to_thread(primary.stop, "immediate")
                at = time.monotonic()
                await promote(standby)
                await told.works_again(PROMISED - (time.monotonic() - at))
                back = time.monotonic()
                await told.finish(LONG + LEASE.total_seconds())
                report("fail-over", works_again=back - at, all_done=time.monotonic() - back)
                assert up.pid("worker") == worker
                assert await told.check() == 0
