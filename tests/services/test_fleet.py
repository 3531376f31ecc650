"""The fleet as people see and steer it: workers, queues, pauses, and runs that nobody serves."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from foliot.domain.errors import Conflict, InvalidField, NotFound
from foliot.domain.ids import encode
from foliot.kit.signals import FLEET, READY
from foliot.store import fleet, roster
from foliot.store.fleet import LEASE, About, Load, Standing
from foliot.store.specs import ensure_lanes
from worker.making import function_spec
from world import World


async def _state(world: World, run: int) -> tuple[str, str | None]:
    view = await world.insights.run(world.tenant, run)
    return view.state, view.waiting_for


async def _queue(world: World, name: str = "default") -> Any:
    page = await world.fleet.queues(limit=10, cursor=None)
    return next(each for each in page.items if each.name == name)


async def _in_state(world: World, state: str) -> list[str]:
    page = await world.insights.runs(world.tenant, status=None, state=state, job=None, limit=50, cursor=None)
    return [each.run_id for each in page.items]


async def test_a_worker_tells_what_it_offers_and_what_it_has_in_hand(world: World):
    line = world.database.line()
    lanes = list(await ensure_lanes(line, ["default", "reports"], ["http", "fn:noop"]))
    await fleet.register(line, 7, "here:42", lanes, About("here", 42, "9.9", "shop:worker", 20))
    await fleet.beat(line, 7, lanes, Load({lanes[0]: 3, lanes[2]: 4}, {lanes[0]: 1.5}))
    (view,) = (await world.fleet.workers(state="live", limit=10, cursor=None)).items
    assert view.worker_id == encode("wrk", 7)
    assert (view.name, view.host, view.pid, view.app) == ("here:42", "here", 42, "shop:worker")
    assert (view.queues, view.handlers) == (["default", "reports"], ["fn:noop", "http"])
    assert (view.concurrency, view.running, view.state) == (20, 7, "live")
    assert view.last_seen_at >= view.started_at
    queues = {each.name: (each.running, each.rate, each.workers) for each in (await _queues(world))}
    assert sum(running for running, _, _ in queues.values()) == 7
    assert sum(rate for _, rate, _ in queues.values()) == 1.5
    assert {workers for _, _, workers in queues.values()} == {1}
    await fleet.leave(line, 7)
    (view,) = (await world.fleet.workers(state="dead", limit=10, cursor=None)).items
    assert (view.running, view.handlers) == (0, ["fn:noop", "http"])
    await line.close()


async def _queues(world: World) -> list[Any]:
    return (await world.fleet.queues(limit=10, cursor=None)).items


async def test_lists_of_workers_and_queues_come_in_pages(world: World):
    line = world.database.line()
    for number in range(1, 6):
        await fleet.register(line, number, f"w{number}")
        await ensure_lanes(line, [f"q{number}"], ["http"])
    await line.close()
    for listing, name in ((partial(world.fleet.workers, state=None), "name"), (world.fleet.queues, "name")):
        cursor, names = None, []
        while True:
            page = await listing(limit=2, cursor=cursor)
            names += [getattr(each, name) for each in page.items]
            if (cursor := page.next_cursor) is None:
                break
        assert names in ([f"w{number}" for number in (5, 4, 3, 2, 1)], [f"q{number}" for number in range(1, 6)])
    for wrong in (
        "nonsense",
        "2026-01-01T00:00:00Z.x",
        ".c_0000000000000",
        "0001-01-01T00:00:00+14:00.c_0000000000000",
    ):
        with pytest.raises(InvalidField, match="cursor"):
            await world.fleet.workers(state=None, limit=2, cursor=wrong)
    with pytest.raises(InvalidField, match="state"):
        await world.fleet.workers(state="asleep", limit=2, cursor=None)


async def test_a_run_that_no_live_worker_offers_is_shown_as_blocked_until_one_does(world: World):
    (run,) = await world.submit(1, function_spec("lonely"))
    blocked = "blocked", "a worker: none that lives offers 'fn:lonely' on queue 'default'"
    assert await _state(world, run) == blocked
    assert (await _queue(world)).unserved == ["fn:lonely"]
    assert (await roster.gauges(world.database)).unserved_lanes == 1
    assert await _in_state(world, "blocked") == [encode("run", run)]
    assert await _in_state(world, "ready") == []
    other = await world.worker("other")
    assert await _state(world, run) == blocked
    worker = await world.worker("lonely")
    assert await _state(world, run) == ("ready", None)
    assert (await _queue(world)).unserved == []
    assert await _in_state(world, "ready") == [encode("run", run)]
    assert (await roster.gauges(world.database)).unserved_lanes == 0
    assert (await roster.gauges(world.database)).live == 2
    await world.fleet.drain(worker.id)  # it takes nothing more
    assert await _state(world, run) == blocked
    await other.die()
    # One that was not heard for a lease may be dead, whether or not somebody has said so yet.
    late = await world.worker("lonely")
    assert await _state(world, run) == ("ready", None)
    await world.sql("UPDATE worker SET seen_at = seen_at - $1::interval WHERE id = $2", LEASE, late.id)
    assert await _state(world, run) == blocked


async def test_draining_is_told_by_the_heartbeat_and_cannot_be_asked_of_the_dead(world: World):
    worker = await world.worker()
    assert await fleet.beat(worker.line, worker.id) == Standing(draining=False, paused=frozenset())
    view = await world.fleet.drain(worker.id)
    assert view.state == "draining"
    assert FLEET in world.hints
    assert (await fleet.beat(worker.line, worker.id)).draining
    assert (await world.fleet.drain(worker.id)).state == "draining"
    await worker.die()
    assert await fleet.beat(worker.line, worker.id) is None
    with pytest.raises(Conflict, match="gone already"):
        await world.fleet.drain(worker.id)
    with pytest.raises(NotFound):
        await world.fleet.drain(999)


async def test_a_paused_queue_gives_out_nothing_and_says_by_when_that_holds(world: World):
    ids = await world.submit(3)
    worker = await world.worker()
    (begun,) = await worker.claim(1)
    paused = await world.fleet.pause("default")
    assert paused.holds_by == paused.paused_at + LEASE
    assert FLEET in world.hints
    assert await worker.claim() == []
    assert await _state(world, ids[1]) == ("blocked", "queue 'default' to be resumed")
    assert await _state(world, begun.id) == ("running", None)
    assert (await fleet.beat(worker.line, worker.id)).paused == frozenset(worker.lanes)
    assert (await world.fleet.pause("default")).paused_at == paused.paused_at
    assert (await roster.gauges(world.database)).paused_queues == 1
    # What runs may come to its end, and what comes back waits with the others.
    assert await worker.settle([begun]) == 1
    # So does what is new, of a handler that the queue has not had before.
    await world.submit(1, function_spec("fresh"))
    assert await (await world.worker("fresh")).claim() == []
    assert (await _queue(world)).ready == 3
    resumed = await world.fleet.resume("default")
    assert (resumed.paused_at, resumed.holds_by, resumed.ready) == (None, None, 3)
    assert world.hints[-2:] == [FLEET, READY]
    assert len(await worker.claim()) == 2


async def test_a_pause_is_of_one_queue_only_and_of_one_that_is_known(world: World):
    await world.submit(1)
    await world.submit(1, function_spec("noop", queue="reports"))
    worker = await world.worker()
    lanes = list(await ensure_lanes(worker.line, ["default", "reports"], ["fn:noop"]))
    await world.fleet.pause("default")
    both = worker.on(worker.line)
    both.lanes = lanes
    (taken,) = await both.claim()
    assert taken.spec == (await world.specs.intern(world.tenant, function_spec("noop", queue="reports"))).id
    for unknown in ("nowhere", "", "nul\0", "ünknown"):
        with pytest.raises(NotFound):
            await world.fleet.pause(unknown)
        with pytest.raises(NotFound):
            await world.fleet.resume(unknown)


async def test_a_claim_after_the_pause_was_acknowledged_finds_nothing_however_many_claim(world: World):
    """Two sides, again and again: whatever was claimed was claimed before the pause had been acknowledged."""
    workers = [await world.worker() for _ in range(3)]
    for _ in range(25):
        await world.submit(6)
        claims = [asyncio.ensure_future(worker.claim(1)) for worker in workers]
        await world.fleet.pause("default")
        await asyncio.gather(*claims)
        assert [await worker.claim() for worker in workers] == [[], [], []]
        await world.fleet.resume("default")
        for worker in workers:
            await worker.claim()


async def test_queues_tell_how_much_waits_and_how_long(world: World):
    await world.submit(2)
    await world.submit(1, delay=timedelta(seconds=30))
    await world.submit(1, delay=timedelta(hours=2))
    await world.submit(4, function_spec("noop", queue="reports"))
    await world.sql("UPDATE run SET due_at = due_at - interval '100 s' WHERE id > 0 AND state = 1")
    seen = await _queue(world)
    assert (seen.ready, seen.scheduled, seen.running, seen.workers) == (2, 2, 0, 0)
    assert 100 <= seen.oldest_age_seconds < 200
    assert (await _queue(world, "reports")).ready == 4


async def test_processes_of_a_machine_are_looked_at_with_the_backlog_of_their_lanes(world: World):
    line = world.database.line()
    lanes = list(await ensure_lanes(line, ["default"], ["fn:noop"]))
    for pid, running in ((1, 3), (2, 0), (3, 1)):
        await fleet.register(line, pid, "w", lanes, About("here", pid))
        await fleet.beat(line, pid, lanes, Load({lanes[0]: running}))
    await world.submit(7)
    await world.submit(5, function_spec("theirs"))
    assert await roster.look_at_processes(line, "here", [1, 2], 1_000) == (1, 7)
    assert await roster.look_at_processes(line, "here", [1, 2, 3], 5) == (2, 5)
    assert await roster.look_at_processes(line, "there", [1, 2], 1_000) == (0, 0)
    await world.fleet.pause("default")
    assert await roster.look_at_processes(line, "here", [1, 2], 1_000) == (1, 0)
    await line.close()
