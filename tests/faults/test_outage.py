"""The database is away for half a minute: what runs goes on, and what it came to is kept until the database is back."""

import asyncio
import time

import pytest

from faults.machine import machine, until
from faults.story import report, story
from foliot.kit.postgres import PostgresServer
from foliot.store.fleet import LEASE
from kit.launching import fresh_home

OUTAGE = 30.0
LONGER, SHORTER = 40.0, 15.0
"""Seconds that handlers take: some end while the database is away, the others after it."""
EACH = 100


@pytest.mark.timeout(180)  # it waits for the handlers, and does little else
async def test_no_handler_is_killed_and_none_runs_twice_through_an_outage_of_the_database():
    with fresh_home() as home, PostgresServer(home) as server, machine(FOLIOT_DATABASE_URL=server.dsn) as up:
        async with story(up) as told:
            await asyncio.gather(told.submit(EACH, LONGER), told.submit(EACH, SHORTER))
            await until(lambda: told.begun() == 2 * EACH, what="all handlers under way")
            worker, address = up.pid("worker"), server.dsn
            await asyncio.to_thread(server.stop, "immediate")
            at = time.monotonic()
            await until(lambda: time.monotonic() - at >= OUTAGE, 2 * OUTAGE, "the end of the outage")
            await asyncio.to_thread(server.start)
            assert server.dsn == address
            back = time.monotonic()
            await told.finish(LONGER + LEASE.total_seconds())
            report("outage", away=back - at, all_done=time.monotonic() - back)
            assert up.pid("worker") == worker
            assert await told.check() == 0
            (row,) = await up.ask("SELECT count(*) FILTER (WHERE ending <> 1), count(*) FROM history")
            assert tuple(row) == (0, 2 * EACH), "each has one attempt, which succeeded"
            assert await up.ask("SELECT run FROM late_result") == []
