"""`kill -9` of any process with a thousand runs in flight: nothing is lost, nothing fires twice, all comes back."""

import os
import signal
import time
from functools import partial

import pytest

from chaos.site import free_ports
from faults.machine import CHILDREN, Machine, gone, machine, until
from faults.story import report, story
from foliot.store.fleet import LEASE
from foliot.worker.lineup import MOST_ALONE

QUICKLY = 10
"""Seconds until new work is done again after any death but a worker's."""
RESTARTED = 20
"""Seconds until the last run that a killed worker held has begun again: its lease of 15 s, the reaper, a claim."""
LEASE_AND_REAPER = 25
"""Seconds until what a killed worker held has been done by another."""


async def _is_back(up: Machine, name: str, killed: int) -> None:
    await until(lambda: up.pid(name) not in {None, killed}, QUICKLY, f"a new {name}")


@pytest.mark.parametrize("name", ["api", "scheduler", "postgres"])
async def test_all_comes_back_and_no_run_is_lost_or_repeated_when_a_process_is_killed(name):
    with machine() as up:
        async with story(up) as told:
            await told.begin()
            before = up.pids()
            async with told.traffic():
                killed, at = up.hurt(name), time.monotonic()
                await told.submit(250)
                answers = time.monotonic() - at
                await told.works_again(QUICKLY)
                works = time.monotonic() - at
            await _is_back(up, name, killed)
            assert works < QUICKLY
            await told.finish(30)
            report(f"kill -9 {name}", answers=answers, works_again=works, all_done=time.monotonic() - at)
            assert {n for n, pid in up.pids().items() if pid != before[n]} == {name}, "only the dead one was replaced"
            assert await told.check() == 0


async def test_another_worker_takes_over_what_a_killed_one_held():
    with machine() as up:
        async with story(up) as told:
            await told.begin(seconds=3)
            async with told.traffic():
                killed, at = up.hurt("worker"), time.monotonic()
                await told.works_again(QUICKLY)
                works = time.monotonic() - at
            await told.finish(LEASE_AND_REAPER)
            assert time.monotonic() - at < LEASE_AND_REAPER + 2
            restarted = max(told.begun_again()) - at
            report("kill -9 worker", works_again=works, restarted=restarted, all_done=time.monotonic() - at)
            assert restarted <= RESTARTED
            repeated = await told.check(killed=killed)
            assert repeated >= 500, "the thousand in flight were not executed again"


@pytest.mark.timeout(120)
async def test_what_two_killed_workers_held_begins_again_at_once_each_in_a_process_of_its_own():
    seconds = 8
    with machine() as up:
        async with story(up) as told:
            await told.submit(MOST_ALONE, seconds=seconds)

            async def are_under_way(times: int) -> bool:
                (row,) = await up.ask("SELECT count(*) FROM run WHERE id > 0 AND started_at IS NOT NULL")
                return row[0] == MOST_ALONE and len(told.executions()) == times * MOST_ALONE

            for times in (1, 2):
                await until(partial(are_under_way, times), LEASE_AND_REAPER, "all of them under way")
                killed, at = up.hurt("worker"), time.monotonic()
                await _is_back(up, "worker", killed)
            await until(partial(are_under_way, 3), 2 * LEASE_AND_REAPER, "all of them under way once more")
            last = told.executions()[2 * MOST_ALONE :]
            begun = [each.at for each in last]
            report("kill -9 worker twice", restarted=max(begun) - at)
            assert max(begun) - min(begun) < seconds, "some waited for others to end"
            assert len({each.pid for each in last}) == MOST_ALONE
            await told.finish(LEASE_AND_REAPER)
            assert await told.completed() == set(told.acknowledged)


async def test_a_fresh_start_goes_on_where_a_killed_supervisor_left_off():
    with machine(FOLIOT_PORT=str(*free_ports(1))) as up:
        async with story(up) as told:
            await told.begin()
            left = up.pids()
            database = left["postgres"]
            up.hurt("api", signal.SIGSTOP)  # holds on to the port, as an API with a slow call would
            up.hurt("up")
            at = time.monotonic()
            up.begin()
            await until(lambda: "waiting for the processes of a killed" in up.log, QUICKLY, "patience")
            os.kill(left["api"], signal.SIGCONT)
            await up.greeted()
            started = time.monotonic() - at
            await told.works_again(QUICKLY)
            works = time.monotonic() - at
            await until(lambda: gone([left[name] for name in CHILDREN]), QUICKLY, "the end of the orphans")
            orphans = time.monotonic() - at
            assert up.pid("postgres") == database, "the database was adopted"
            await told.finish(30)
            report("kill -9 up", started=started, works_again=works, orphans_gone=orphans)
            assert await told.check() == 0


@pytest.mark.timeout(120)  # half a minute of it is the stop itself: twice the lease
async def test_a_worker_that_was_stopped_for_longer_than_its_lease_changes_nothing_afterwards():
    with machine() as up:
        async with story(up) as told:
            told.acknowledged.append((await up.call("POST", "/v1/runs", {"handler": "stuck"}))["runId"])
            await told.begin()
            frozen, at = up.hurt("worker", signal.SIGSTOP), time.monotonic()
            (last,) = await up.ask("SELECT last_value FROM fence")
            other = up.spawn("worker", "app:worker")
            try:
                held = {each.run for each in told.executions() if each.pid == frozen}

                def retaken() -> bool:
                    return any(each.run in held for each in told.executions() if each.pid == other.pid)

                await until(retaken, LEASE_AND_REAPER, "another worker taking over")
                took = time.monotonic() - at
                await told.submit(2_000, seconds=0.5)
                await until(lambda: time.monotonic() - at > 2 * LEASE.total_seconds(), what="twice the lease")
                (woken,) = await up.ask("SELECT clock_timestamp()")
                os.kill(frozen, signal.SIGCONT)
                await _is_back(up, "worker", frozen)
                assert "declared dead while it was out of reach" in up.log
                await told.finish(LEASE_AND_REAPER)
                (accepted,) = await up.ask(
                    "SELECT count(*) FROM history JOIN worker ON worker.id = history.worker"
                    " WHERE worker.name LIKE '%:' || $1 AND finished_at > $2",
                    str(frozen),
                    *woken,
                )
                assert accepted[0] == 0, "a write was accepted from a worker that had lost its lease"
                assert all(each.fence <= last[0] for each in told.executions() if each.pid == frozen), "it claimed more"
                report("SIGSTOP worker", taken_over=took, all_done=time.monotonic() - at)
                assert await told.check(killed=frozen) >= 500
            finally:
                other.terminate()
                other.wait()


async def test_connections_come_back_when_the_server_ends_them_all():
    with machine() as up:
        async with story(up) as told:
            await told.begin()
            before, at = up.pids(), time.monotonic()
            async with told.traffic():
                ended = await up.ask(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'foliot'"
                )
                assert len(ended) > 10
                await told.submit(250)
                await told.works_again(QUICKLY)
            report("pg_terminate_backend", works_again=time.monotonic() - at)
            await told.finish(30)
            assert up.pids() == before, "no process ended"
            assert await told.check() == 0
