"""Registered functions as handlers."""

import asyncio
import functools
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from foliot import Context, Permanent, Snooze
from foliot.domain.errorclass import classes_of
from foliot.domain.ids import encode
from foliot.domain.outcome import Answer, Failure, Returned, Snoozed
from foliot.worker.functions import function_executors
from worker.making import NOW, PATIENCE, assignment, function_spec


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


async def run(function: Any, threads: ThreadPoolExecutor, **fields: Any) -> Answer:
    executor = function_executors({"f": function}, threads)["f"]
    async with asyncio.timeout(PATIENCE):
        return await executor(assignment(function_spec("f", timeout=timedelta(seconds=30)), **fields))


async def test_a_coroutine_runs_on_the_loop_and_learns_about_its_attempt(threads: ThreadPoolExecutor):
    seen: list[Any] = []

    async def handler(ctx: Context, payload: Any) -> str:
        seen.extend([ctx, payload, threading.current_thread()])
        return "what it returns"

    answer = await run(handler, threads, id=5 << 22, job=6 << 22, attempt=2, fence=99)
    assert answer == Returned(b'"what it returns"')
    ctx, payload, thread = seen
    assert payload == {"n": 1}
    assert thread is threading.main_thread()
    assert (ctx.run, ctx.job) == (encode("run", 5 << 22), encode("job", 6 << 22))
    assert (ctx.attempt, ctx.fence, ctx.name) == (3, 99, "report")
    assert ctx.deadline == NOW + timedelta(seconds=30)
    assert ctx.scheduled_at == NOW
    ctx.log.info("loggers need no set-up")


async def test_a_plain_function_runs_in_a_thread(threads: ThreadPoolExecutor):
    seen: list[Any] = []

    def handler(ctx: Context, payload: Any) -> None:
        seen.append(threading.current_thread())

    assert await run(handler, threads) is None
    assert seen[0] is not threading.main_thread()


async def test_a_small_result_is_kept_and_whatever_else_is_returned_does_no_harm(threads: ThreadPoolExecutor):
    def handler(ctx: Context, payload: Any) -> Any:
        return {"small": {"rows": 7}, "large": "x" * 5_000, "odd": object()}[payload]

    for payload, kept in ((b'"small"', Returned(b'{"rows":7}')), (b'"large"', None), (b'"odd"', None)):
        assert await run(handler, threads, payload=payload) == kept


async def test_what_a_handler_raises_is_told_with_its_traceback(threads: ThreadPoolExecutor):
    async def on_the_loop(ctx: Context, payload: Any) -> None:
        raise ValueError("no such team")

    def in_a_thread(ctx: Context, payload: Any) -> None:
        raise ValueError("no such team")

    for handler in (on_the_loop, in_a_thread):
        failure = await run(handler, threads)
        assert failure is not None
        assert failure.error.rstrip().endswith("ValueError: no such team")
        assert handler.__name__ in failure.error
        assert failure.error.count("  File ") == 1  # its own frame, and none of ours
        assert not failure.permanent
        assert failure.classes == classes_of(ValueError)


async def test_a_snooze_is_no_failure(threads: ThreadPoolExecutor):
    async def on_the_loop(ctx: Context, payload: Any) -> None:
        raise Snooze("PT15M", "the file is not there yet")

    def in_a_thread(ctx: Context, payload: Any) -> None:
        raise Snooze(timedelta(minutes=15), "the file is not there yet")

    def hurried(ctx: Context, payload: Any) -> None:
        raise Snooze(0)

    for handler in (on_the_loop, in_a_thread):
        assert await run(handler, threads) == Snoozed(timedelta(minutes=15), "the file is not there yet")
    assert await run(hurried, threads) == Snoozed(timedelta(seconds=1))


@pytest.mark.parametrize("delay", [-1, "soon", timedelta(days=31), float("nan")])
async def test_a_snooze_that_cannot_be_fails_and_says_why(threads: ThreadPoolExecutor, delay: Any):
    def handler(ctx: Context, payload: Any) -> None:
        raise Snooze(delay)

    failure = await run(handler, threads)
    assert isinstance(failure, Failure)
    assert "delay: " in failure.error
    assert "InvalidField" in failure.classes


async def test_a_permanent_error_is_of_no_kind_that_a_rule_about_all_exceptions_names(threads: ThreadPoolExecutor):
    class Closed(Permanent):
        pass

    async def handler(ctx: Context, payload: Any) -> None:
        raise Closed("no such account")

    failure = await run(handler, threads)
    assert isinstance(failure, Failure)
    assert failure.classes[1:] == ("Closed", "Permanent")


async def test_permanent_means_that_trying_again_is_no_use(threads: ThreadPoolExecutor):
    async def handler(ctx: Context, payload: Any) -> None:
        raise Permanent("the account is closed")

    async def silent(ctx: Context, payload: Any) -> None:
        raise Permanent

    failure = await run(handler, threads)
    assert failure == Failure("the account is closed", permanent=True, classes=classes_of(Permanent, Permanent))
    failure = await run(silent, threads)
    assert failure is not None
    assert failure.error


async def test_a_payload_that_cannot_be_read_is_not_tried_again(threads: ThreadPoolExecutor):
    async def handler(ctx: Context, payload: Any) -> None:
        pytest.fail("it must not be called")

    for payload in (b"{", b'"\xff"', b""):
        failure = await run(handler, threads, payload=payload)
        assert failure is not None
        assert failure.permanent


async def test_a_handler_that_exits_ends_its_attempt_and_not_the_worker(threads: ThreadPoolExecutor):
    async def on_the_loop(ctx: Context, payload: Any) -> None:
        sys.exit(payload["n"])

    def in_a_thread(ctx: Context, payload: Any) -> None:
        sys.exit(payload["n"])

    for handler in (on_the_loop, in_a_thread):
        failure = await run(handler, threads, payload=b'{"n":3}')
        assert failure is not None
        assert "sys.exit(3)" in failure.error
        assert await run(handler, threads, payload=b'{"n":0}') is None


async def test_an_exception_outside_the_usual_tree_is_a_failure_like_any(threads: ThreadPoolExecutor):
    class Odd(BaseException):
        pass

    async def on_the_loop(ctx: Context, payload: Any) -> None:
        raise Odd

    def in_a_thread(ctx: Context, payload: Any) -> None:
        raise Odd

    for handler in (on_the_loop, in_a_thread):
        failure = await run(handler, threads)
        assert failure is not None
        assert "Odd" in failure.error


async def test_stop_iteration_in_a_thread_does_not_hang(threads: ThreadPoolExecutor):
    def handler(ctx: Context, payload: Any) -> None:
        next(iter(()))

    failure = await run(handler, threads)
    assert failure is not None
    assert "StopIteration" in failure.error


async def test_a_coroutine_behind_a_plain_decorator_is_awaited(threads: ThreadPoolExecutor):
    ran = []

    async def inner(ctx: Context, payload: Any) -> None:
        await asyncio.sleep(0)
        ran.append(payload)

    @functools.wraps(inner)
    def plain(ctx: Context, payload: Any) -> Any:
        return inner(ctx, payload)

    class Callable_:  # noqa: N801 - a callable object
        async def __call__(self, ctx: Context, payload: Any) -> None:
            await inner(ctx, payload)

    for handler in (plain, Callable_(), functools.partial(inner)):
        assert await run(handler, threads) is None
    assert len(ran) == 3


async def test_a_cancelled_coroutine_says_so(threads: ThreadPoolExecutor):
    begun = asyncio.Event()

    async def handler(ctx: Context, payload: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(run(handler, threads))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
