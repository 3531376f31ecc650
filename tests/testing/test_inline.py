"""Functions inside a test: what a worker would do with them, without one, and in no time."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot import AsyncFoliot, Context, Foliot, InvalidField, Permanent, RunFailed, Snooze, Worker
from foliot.domain.errors import FoliotError
from foliot.sdk.settling import NotHere
from foliot.testing import Inline, InlineRun, ManualClock

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def ends(run: InlineRun) -> list[str]:
    return [each.status for each in run.tries]


def test_a_function_gets_its_context_and_its_payload_as_from_a_worker(worker: Worker):
    seen: list[Any] = []

    @worker.task
    async def add(ctx: Context, payload: dict[str, int]) -> dict[str, int]:
        seen.extend([ctx.run, ctx.job, ctx.name, ctx.attempt, ctx.scheduled_at, ctx.time_left, ctx.cancelled])
        return {"sum": payload["a"] + payload["b"]}

    with Inline(worker) as inline:
        run = inline.run("add", {"a": 1, "b": 2}, timeout_seconds=60).check()
        assert (run.status, run.result, run.attempts, run.finished_at) == ("completed", {"sum": 3}, 1, NEW_YEAR)
        assert seen == [run.id, None, "add", 1, NEW_YEAR, timedelta(seconds=60), False]
        assert inline.call("add", {"a": 2, "b": 2}) == {"sum": 4}


def test_retries_wait_by_the_clock_and_the_last_failure_is_told_with_its_cause(worker: Worker):
    at: list[datetime] = []
    inline = Inline(worker, jitter=0.5)

    @worker.task
    def flaky(ctx: Context, payload: Any) -> None:
        at.append(inline.clock())
        raise ValueError(f"try {ctx.attempt}")

    run = inline.run("flaky", max_retries=2, backoff={"initial": "PT10S", "factor": 2})
    assert [each - NEW_YEAR for each in at] == [timedelta(), timedelta(seconds=5), timedelta(seconds=15)]
    assert (ends(run), run.state, run.error_class) == (["failed"] * 3, "dead", "ValueError")
    with pytest.raises(RunFailed, match="failed after 3 attempts: ValueError: try 3") as caught:
        run.check()
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ValueError, match="try 1"):
        inline.call("flaky")


def test_what_handlers_say_by_raising_counts(worker: Worker):
    @worker.task
    async def later(ctx: Context, payload: Any) -> int:
        if (done := await ctx.last_checkpoint() or 0) < 2:
            await ctx.checkpoint(done + 1)
            raise Snooze("PT1H", "not yet")
        return ctx.attempt

    @worker.task
    async def never(ctx: Context, payload: Any) -> None:
        raise Permanent("no use")

    with Inline(worker) as inline:
        run = inline.run("later")
        assert (ends(run), run.result, run.attempts) == (["snoozed", "snoozed", "completed"], 1, 1)
        assert inline.clock() == NEW_YEAR + timedelta(hours=2)
        assert ends(inline.run("never", max_retries=5)) == ["failed"]


def test_a_coroutine_is_stopped_when_its_time_is_up_and_sleeps_take_no_time(worker: Worker):
    cleaned: list[str] = []

    @worker.task
    async def slow(ctx: Context, payload: float) -> str:
        try:
            await asyncio.sleep(payload)
        finally:
            cleaned.append(ctx.stop_reason or "")
        return "done"

    began = time.monotonic()
    with Inline(worker) as inline:
        assert inline.run("slow", 3599, timeout_seconds=3600).result == "done"
        assert inline.clock() == NEW_YEAR + timedelta(seconds=3599)
        run = inline.run("slow", 3601, timeout_seconds=3600, max_retries=0)
        assert (ends(run), run.error_message, cleaned[1]) == (["timed_out"], "timed out after 3600 s", "its time is up")
        with pytest.raises(TimeoutError, match="timed out after 1 s"):
            inline.call("slow", 2, timeout_seconds=1)
    assert time.monotonic() - began < 60


def test_a_plain_function_sees_the_end_of_its_time_if_the_clock_is_moved(worker: Worker):
    inline = Inline(worker)

    @worker.task
    def crunch(ctx: Context, payload: int) -> int:
        for part in range(10):
            inline.clock.advance(payload)
            ctx.progress(done=part + 1, total=10)
            if ctx.cancelled:
                return -1
        return ctx.checkpoint(10) or 10

    assert inline.run("crunch", 1, timeout_seconds=60).result == 10
    run = inline.run("crunch", 20, timeout_seconds=60, max_retries=0)
    assert (ends(run), run.status, run.progress["done"]) == (["timed_out"], "failed", 3)


def test_a_heartbeat_begins_the_time_anew(worker: Worker):
    @worker.task
    async def long(ctx: Context, payload: Any) -> None:
        for _ in range(5):
            await asyncio.sleep(50)
            ctx.heartbeat()

    assert ends(Inline(worker).run("long", timeout_seconds=60, max_retries=0)) == ["completed"]


def test_schedules_fire_as_time_passes_and_skip_what_overlaps(worker: Worker):
    seen: list[tuple[str, datetime]] = []

    @worker.task(cron="0 9 * * *", timezone="Europe/Berlin", payload={"n": 1})
    async def mornings(ctx: Context, payload: dict[str, int]) -> None:
        seen.append((ctx.name, ctx.scheduled_at))

    @worker.task(every="PT6H", max_runs=2, max_retries=1, backoff={"initial": "PT10H", "max": "PT10H"})
    async def fails(ctx: Context, payload: None) -> None:
        seen.append((ctx.name, ctx.scheduled_at))
        raise ValueError

    with Inline(worker, jitter=0.999) as inline:
        inline.advance(timedelta(days=1))
    eight, six, eighteen = (NEW_YEAR + timedelta(hours=hours) for hours in (8, 6, 18))
    assert seen == [("fails", six), ("mornings", eight), ("fails", six), ("fails", eighteen)]
    assert inline.runs[0].job_id is not None


def test_payloads_and_policies_are_checked_as_by_the_api(worker: Worker):
    worker.task(lambda ctx, payload: None, name="f")
    inline = Inline(worker)
    for payload, policy, said in (
        (object(), {}, "cannot be sent as JSON"),
        ("x" * 300_000, {}, "at most 262,144"),
        (None, {"max_retry": 1}, "maxRetry"),
        (None, {"delivery": "atMostOnce", "max_retries": 3}, "never tried again"),
    ):
        with pytest.raises(InvalidField, match=said):
            inline.submit("f", payload, **policy)
    with pytest.raises(InvalidField, match=r"no function 'g'.*it has: f"):
        inline.run("g")


async def test_clients_of_the_application_hand_in_here(worker: Worker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FOLIOT_URL", raising=False)
    monkeypatch.delenv("FOLIOT_KEY", raising=False)

    @worker.task
    async def parent(ctx: Context, payload: int) -> None:
        async with AsyncFoliot() as client:
            await client.submit("child", payload + 1, delay="PT1M", idempotency_key=ctx.run)
            await client.submit("child", payload + 1, delay="PT1M", idempotency_key=ctx.run)
            await client.submit("https://example.com/elsewhere")

    @worker.task
    def child(ctx: Context, payload: int) -> int:
        return payload * 2

    inline = Inline(worker)
    with inline.captured() as handed_in:
        Foliot().submit("parent", 20)
        assert inline.work() == 1
        assert [run.handler for run in handed_in] == ["parent", "child", "http"]
        assert Foliot().get_run(handed_in[1].id).status == "pending"
        assert inline.advance("PT1M") == 1
        assert Foliot().wait(handed_in[1].id).result == 42
        assert Foliot().cancel_run(handed_in[2].id).status == "cancelled"
        with pytest.raises(FoliotError, match=r"GET /v1/jobs.*runs only"):
            Foliot().list_jobs()
    with pytest.raises(FoliotError):
        Foliot(max_retries=0).submit("parent", 20)


def test_a_transaction_is_whatever_the_test_opens(worker: Worker):
    written: list[str] = []

    @asynccontextmanager
    async def connect() -> AsyncIterator[list[str]]:
        draft: list[str] = []
        yield draft
        written.extend(draft)

    @worker.task
    async def book(ctx: Context, payload: str) -> None:
        async with ctx.transaction() as connection:
            connection.append(payload)
            if payload == "bad":
                raise ValueError
        raise RuntimeError("after the end")

    @worker.task
    def book_plainly(ctx: Context, payload: str) -> None:
        with ctx.transaction() as connection:
            connection.append(payload)
            if payload == "bad":
                raise ValueError
        raise RuntimeError("after the end")

    inline = Inline(worker, connect=connect)
    for name in ("book", "book_plainly"):
        assert inline.run(name, "good").status == "completed"
        assert inline.run(name, "bad", max_retries=0).status == "failed"
    assert written == ["good", "good"]
    with pytest.raises(NotHere):
        Inline(worker).call("book", "good")


def test_a_plain_function_waits_for_a_connection_that_others_await(worker: Worker):
    class Connection:
        async def fetchval(self, query: str, *args: object, **more: object) -> str:
            await asyncio.sleep(0)
            return f"{query} {args} {more}"

    @asynccontextmanager
    async def connect() -> AsyncIterator[Connection]:
        yield Connection()

    @worker.task
    def ask(ctx: Context, payload: int) -> str:
        with ctx.transaction() as connection:
            return connection.fetchval("who", payload, timeout=9)

    assert Inline(worker, connect=connect).call("ask", 17) == "who (17,) {'column': 0, 'timeout': 9}"


def test_a_clock_goes_forward_only():
    clock = ManualClock(NEW_YEAR)
    assert clock.advance("PT1M") == NEW_YEAR + timedelta(minutes=1)
    clock.reach(NEW_YEAR)
    assert clock() == NEW_YEAR + timedelta(minutes=1)
    with pytest.raises(InvalidField):
        clock.advance(timedelta(seconds=-1))
    with pytest.raises(InvalidField, match="offset"):
        ManualClock(datetime(2026, 1, 1))  # noqa: DTZ001 - the point
