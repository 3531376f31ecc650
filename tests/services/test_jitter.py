"""Jobs with jitter: each has its own place after the instant, always the same, and overlap is asked there."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from foliot.domain.states import State
from foliot.store.database import Line
from foliot.store.recovery import Contended
from foliot.store.waiting import DueRun, fetch_due, promote, promote_limited
from services.test_graphs import make
from world import World

MINUTE = timedelta(minutes=1)


async def _promote(world: World, now) -> None:
    while await world.promoter.run_once(now):
        pass


async def test_jitter_keeps_both_times_and_never_passes_the_next_instant(world: World):
    timing = {"every": "PT1M", "scheduleAt": world.half_way(MINUTE), "jitter": "PT1H"}
    jobs = [await world.job_id(**timing, overlap="allow") for _ in range(20)]
    first = await world.next_at()
    await world.fire(first)
    rows = await world.sql("SELECT job, scheduled_at, due_at, state FROM run WHERE job = ANY ($1::bigint[])", jobs)
    assert len(rows) == 20
    assert {row["scheduled_at"] for row in rows} == {first}
    assert {row["state"] for row in rows} == {State.SCHEDULED}
    assert all(first <= row["due_at"] < first + MINUTE for row in rows)
    assert len({row["due_at"] for row in rows}) > 15  # and not all in the last millisecond before it
    await world.fire(first + MINUTE)
    again = await world.sql("SELECT job, due_at FROM run WHERE scheduled_at = $1", first + MINUTE)
    assert {row["job"]: row["due_at"] - MINUTE for row in again} == {row["job"]: row["due_at"] for row in rows}


async def test_a_graph_has_its_place_before_the_next_instant_too(world: World):
    timing = {"every": "PT1M", "scheduleAt": world.half_way(MINUTE), "jitter": "PT1H"}
    for number in range(8):
        await make(world, {"key": f"root{number}", **timing}, {"key": f"leaf{number}", "dependsOn": [f"root{number}"]})
    first = await world.next_at()
    await world.fire(first)
    rows = await world.sql("SELECT DISTINCT due_at FROM run WHERE scheduled_at = $1", first)
    assert all(first <= row["due_at"] < first + MINUTE for row in rows)
    assert len(rows) > 5


async def test_a_jittered_run_is_skipped_only_if_the_previous_is_going_when_its_own_time_comes(world: World):
    job = await world.job_id(every="PT1M", jitter="PT30S")
    first = await world.next_at()
    worker = await world.worker()
    await world.fire(first)
    due = await world.value("SELECT due_at FROM run WHERE job = $1", job)
    await _promote(world, due)
    taken = await worker.claim()
    await world.fire(first + MINUTE)  # still going at the nominal time: too early to tell
    assert await world.count("run") == 2
    await worker.settle(taken)
    await _promote(world, due + MINUTE)
    assert await world.count("history") == 1
    await world.fire(first + 2 * MINUTE)
    await _promote(world, due + 2 * MINUTE)
    assert await world.value("SELECT array_agg(state) FROM history WHERE scheduled_at > $1", first) == [State.SKIPPED]


@pytest.mark.parametrize(
    ("overlap", "why"), [("skip", "the previous run was still going"), ("queueOne", "another run waits already")]
)
async def test_two_who_ask_for_the_one_place_in_the_same_moment_leave_one_skipped(world: World, overlap: str, why: str):
    """A promoter looks at the job while another has not committed yet."""
    job = await world.job_id(every="PT1M", jitter="PT30S", overlap=overlap)
    instant = await world.next_at()
    if overlap == "queueOne":  # the place that is asked for is the one to wait in
        await world.fire(instant)
        instant += MINUTE
        await _promote(world, instant)
    await world.fire(instant)
    await world.fire(instant + MINUTE)
    now = instant + 2 * MINUTE
    former, latter = await fetch_due(world.promoter._line, "runs", 3, now)
    assert former.limited == latter.limited == (overlap == "queueOne")

    async def move(line: Line, run: DueRun) -> int:
        alone = [run]
        return await (
            promote_limited(line, "runs", alone, now) if run.limited else promote(line, "runs", alone, [1], now)
        )

    async with world.unfinished() as line:
        assert await move(line, former) == 1
        second = asyncio.create_task(move(world.promoter._line, latter))
        await world.until_waiting()
    assert await second == 1
    told = await world.sql("SELECT run, state, error FROM history")
    assert [tuple(row) for row in told] == [(latter.id, State.SKIPPED, why)]
    assert await world.value("SELECT occurrence = '-infinity' FROM run WHERE id = $1", former.id)
    assert await world.value("SELECT count(*) FROM run WHERE job = $1 AND state = 0", job) == 0


async def test_whoever_meets_rivals_all_the_time_comes_again_later(world: World, monkeypatch: pytest.MonkeyPatch):
    """Not one more try after the other while everybody does the same, and nobody falls over."""
    tries = []

    async def taken(line: Line, name: str, *_: object) -> None:
        tries.append(name)
        raise asyncpg.UniqueViolationError

    monkeypatch.setattr(Line, "fetchval", taken)
    with pytest.raises(Contended):
        await promote(world.promoter._line, "runs", [], [])
    assert tries == ["promote_runs"] * 3
