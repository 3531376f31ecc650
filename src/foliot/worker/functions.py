"""Runs registered functions: coroutines on the loop, plain functions in threads."""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor as Threads
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, Final

import msgspec

from foliot.domain.errorclass import classes_of
from foliot.domain.outcome import SUCCEEDED, Answer, Failure, Returned, Snoozed
from foliot.domain.result import small_json
from foliot.sdk.context import Context, Permanent, Snooze
from foliot.sdk.desk import NOBODY, Desk
from foliot.sdk.settling import Begin, no_transactions
from foliot.store.dispatch import Settlement
from foliot.store.effects import Effects, Isolation
from foliot.worker.executor import Assignment, Executor

Function = Callable[[Context, Any], Any]

_AT_A_DISTANCE: Final = no_transactions(
    "ctx.transaction() needs a worker inside the trusted network, with the database's address (FOLIOT_DATABASE_URL),"
    " and a function in that worker's own process"
)
_CALLERS: Final = frozenset({__file__, inspect.getfile(ThreadPoolExecutor)})


def function_executors(
    functions: Mapping[str, Function], threads: Threads, effects: Effects | None = None, desk: Desk = NOBODY
) -> dict[str, Executor]:
    """One executor per function, by name. Without `effects` handlers have no transactions."""
    return {name: _executor(function, threads, effects, desk) for name, function in functions.items()}


def is_coroutine_function(function: Function) -> bool:
    """Also of an object that is called like one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _executor(function: Function, threads: Threads, effects: Effects | None, desk: Desk) -> Executor:
    call: Callable[[Context, Any], Awaitable[Any]]
    begin: Begin = _AT_A_DISTANCE if effects is None else partial(_begin, effects)
    if is_coroutine_function(function):
        call = function
        gives_up = desk.is_cancelled
    else:
        call = _in_thread(function, threads)
        gives_up = desk.has_noticed  # one that was asked to end and never knew has done its work
    stopping = desk.stopping

    async def execute(assignment: Assignment) -> Answer:
        try:
            payload = msgspec.json.decode(assignment.payload)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Failure(f"the payload cannot be read: {error}", permanent=True, classes=("UnreadablePayload",))
        try:
            value = await call(_context(assignment, partial(begin, assignment), desk), payload)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is the answer to its attempt
            return answer_of(error)
        if stopping and gives_up(assignment):
            raise asyncio.CancelledError
        return None if value is None or (result := small_json(value)) is None else Returned(result)

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


def _begin(
    effects: Effects, assignment: Assignment, isolation: Isolation | None = None
) -> AbstractAsyncContextManager[Any]:
    success = Settlement(assignment.run, assignment.started_at, SUCCEEDED)
    return effects.transaction(success, assignment.spec.timeout, isolation)


def _in_thread(function: Function, threads: Threads) -> Callable[[Context, Any], Awaitable[Any]]:
    def call(context: Context, payload: Any) -> Any:
        try:
            return function(context, payload)
        except StopIteration as error:
            # No future can carry it: whoever waits for the thread would wait for ever.
            raise RuntimeError("the handler raised StopIteration") from error

    async def wait(context: Context, payload: Any) -> Any:
        begun = threads.submit(call, context, payload)
        ended = asyncio.wrap_future(begun)
        try:
            result = await asyncio.shield(ended)
        except asyncio.CancelledError:
            # A thread cannot be stopped, only asked (ctx.cancelled). The runner does not wait for ever.
            if begun.cancel():
                raise
            result = await ended
        # A coroutine function behind a plain decorator answers with something to wait for.
        return await result if inspect.isawaitable(result) else result

    return wait


def _of_handler(frames: TracebackType | None) -> TracebackType | None:
    """The handler's own frames: those of who called it say nothing."""
    while frames is not None and frames.tb_frame.f_code.co_filename in _CALLERS:
        frames = frames.tb_next
    return frames


def _context(assignment: Assignment, begin: Begin, desk: Desk) -> Context:
    run = assignment.run
    # By place: with their names the call takes twice as long, for every run.
    return Context(
        run.id,
        run.job,
        assignment.name,
        run.attempt + 1,
        run.fence,
        run.scheduled_at,
        assignment.started_at,
        assignment.spec.timeout,
        begin,
        desk,
        assignment,
    )
