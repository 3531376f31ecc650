"""The database is away for half a minute: what runs goes on, and what it came to is kept until the database is back."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from faults.machine import Machine, machine, until
from faults.story import report, story
from foliot.kit.postgres import PostgresServer
from foliot.store.fleet import LEASE
from kit.launching import fresh_home

OUTAGE = 30.0
LONGER, SHORTER = 40.0, 15.0
"""Seconds that handlers take: some end while the database is away, the others after it."""
EACH, FEW = 50, 3
"""How many of a kind take as long: functions in the worker's own process, and what has a process or a target apart."""


@contextmanager
def remote_worker(up: Machine) -> Iterator["subprocess.Popen[bytes]"]:
    """One that has only the address of the API, and a queue of its own."""
    process = up.spawn("worker", "serve", "app:worker", "--gateway", "--queue", "remote")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(180)  # it waits for the handlers, and does little else
async def test_no_handler_is_killed_and_none_runs_twice_through_an_outage_of_the_database():
    with (
        fresh_home() as home,
        PostgresServer(home) as server,
        machine(FOLIOT_DATABASE_URL=server.dsn) as up,
    ):
        async with story(up) as told:
            with remote_worker(up) as remote:
                kinds = [
                    ({}, EACH),
                    ({"queue": "remote"}, EACH),
                    ({"handler": "apart"}, FEW),
                    ({"handler": "apart", "queue": "remote"}, FEW),
                    ({"handler": told.target.url}, FEW),
                ]
                calls = [(count, seconds, fields) for fields, count in kinds for seconds in (LONGER, SHORTER)]
                await asyncio.gather(*(told.submit(count, seconds, **fields) for count, seconds, fields in calls))
                total, called = len(told.acknowledged), 2 * FEW
                await until(lambda: told.begun() == total - called, 60, "all functions under way")
                await until(lambda: len(told.target.heard) == called, what="all requests under way")
                worker, address = up.pid("worker"), server.dsn
                await asyncio.to_thread(server.stop, "immediate")
                at = time.monotonic()
                await until(lambda: time.monotonic() - at >= OUTAGE, 2 * OUTAGE, "the end of the outage")
                await asyncio.to_thread(server.start)
                assert server.dsn == address
                back = time.monotonic()
                await told.finish(LONGER + LEASE.total_seconds())
                report("outage", away=back - at, all_done=time.monotonic() - back)
                assert (up.pid("worker"), remote.poll()) == (worker, None)
                assert await told.check() == 0
                (row,) = await up.ask("SELECT count(*) FILTER (WHERE ending <> 1), count(*) FROM history")
                assert tuple(row) == (0, total), "each has one attempt, which succeeded"
                workers = await up.ask("SELECT worker FROM history GROUP BY worker")
                assert len(workers) == 2, "and both workers are who they were"
                assert await up.ask("SELECT run FROM late_result") == []
