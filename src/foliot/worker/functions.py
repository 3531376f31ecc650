"""Runs registered functions: coroutines on the loop, plain functions in threads."""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Final

import msgspec

from foliot.domain.errorclass import classes_of
from foliot.domain.outcome import Failure, Snoozed
from foliot.sdk.context import Context, Permanent, Snooze
from foliot.worker.executor import Assignment, Executor

Function = Callable[[Context, Any], Any]

_CALLERS: Final = frozenset({__file__, inspect.getfile(ThreadPoolExecutor)})


def function_executors(functions: Mapping[str, Function], threads: ThreadPoolExecutor) -> dict[str, Executor]:
    """One executor per function, by name."""
    return {name: _executor(function, threads) for name, function in functions.items()}


def _executor(function: Function, threads: ThreadPoolExecutor) -> Executor:
    call: Callable[[Context, Any], Awaitable[Any]]
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        call = function
    else:
        call = _in_thread(function, threads)

    async def execute(assignment: Assignment) -> Failure | Snoozed | None:
        try:
            payload = msgspec.json.decode(assignment.run.payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Failure(f"the payload cannot be read: {error}", permanent=True, classes=("UnreadablePayload",))
        try:
            await call(_context(assignment), payload)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is the answer to its attempt
            return answer_of(error)
        return None

    return execute


def answer_of(error: BaseException) -> Failure | Snoozed | None:
    """What a handler says by raising this; none is success."""
    match error:
        case Snooze(delay=delay, reason=reason):
            return Snoozed(delay, reason)
        case Permanent():
            # Its own bases are not told: a rule about every Exception must not overrule the handler's word.
            said = str(error) or "the handler said that trying again is no use"
            return Failure(said, permanent=True, classes=classes_of(type(error), Permanent))
        case SystemExit(code=code):
            # A script's way to say how it went; it must not take the whole worker along.
            return Failure(f"the handler called sys.exit({code!r})", classes=classes_of(type(error))) if code else None
        case _:
            trace = "".join(traceback.format_exception(type(error), error, _of_handler(error.__traceback__)))
            return Failure(trace, classes=classes_of(type(error)))


def _in_thread(function: Function, threads: ThreadPoolExecutor) -> Callable[[Context, Any], Awaitable[Any]]:
    def call(context: Context, payload: Any) -> Any:
        try:
            return function(context, payload)
        except StopIteration as error:
            # No future can carry it: whoever waits for the thread would wait for ever.
            raise RuntimeError("the handler raised StopIteration") from error

    async def wait(context: Context, payload: Any) -> None:
        result = await asyncio.get_running_loop().run_in_executor(threads, call, context, payload)
        if inspect.isawaitable(result):  # a coroutine function behind a plain decorator
            await result

    return wait


def _of_handler(frames: TracebackType | None) -> TracebackType | None:
    """The handler's own frames: those of who called it say nothing."""
    while frames is not None and frames.tb_frame.f_code.co_filename in _CALLERS:
        frames = frames.tb_next
    return frames


def _context(assignment: Assignment) -> Context:
    run = assignment.run
    return Context(
        run=run.id,
        job=run.job,
        name=assignment.name,
        attempt=run.attempt + 1,
        fence=run.fence,
        scheduled_at=run.scheduled_at,
        started_at=assignment.started_at,
        timeout=assignment.spec.timeout,
    )
