"""Runs registered functions: coroutines on the loop, plain functions in threads."""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from foliot.domain.outcome import Failure
from foliot.sdk.context import Context, Permanent
from foliot.worker.executor import Assignment, Executor

Function = Callable[[Context, Any], Any]


def function_executors(functions: Mapping[str, Function], threads: ThreadPoolExecutor) -> dict[str, Executor]:
    """One executor per function, by name."""
    return {name: _executor(function, threads) for name, function in functions.items()}


def _executor(function: Function, threads: ThreadPoolExecutor) -> Executor:
    call: Callable[[Context, Any], Awaitable[Any]]
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        call = function
    else:

        async def call(context: Context, payload: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(threads, function, context, payload)

    async def execute(assignment: Assignment) -> Failure | None:
        run = assignment.run
        context = Context(
            run=run.id,
            job=run.job,
            name=assignment.name,
            attempt=run.attempt + 1,
            fence=run.fence,
            scheduled_at=run.scheduled_at,
            started_at=assignment.started_at,
            timeout=assignment.spec.timeout,
        )
        try:
            await call(context, msgspec.json.decode(run.payload))
        except Permanent as error:
            return Failure(f"{error}", permanent=True)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is the answer to its attempt
            # The first frame is this one; the handler's own begins after it.
            frames = error.__traceback__.tb_next if error.__traceback__ else None
            return Failure("".join(traceback.format_exception(type(error), error, frames)))
        return None

    return execute
