"""The application that the bench serves: functions that do nothing, or only say when they began."""

import os
import time
from typing import Any

from foliot.sdk.context import Context
from foliot.sdk.worker import Worker

worker = Worker()
_NOTES = os.environ.get("FOLIOT_BENCH_NOTES")


@worker.task
async def noop(ctx: Context, payload: Any) -> None:
    """Cost nothing: what is measured is everything around it."""


@worker.task
async def note(ctx: Context, payload: Any) -> None:
    """Write down when the first line was reached, and which instant it was for."""
    began = time.time()
    if _NOTES:
        line = f"{payload.get('sent', 0)} {ctx.scheduled_at.timestamp()} {began}\n"
        with open(_NOTES, "ab", buffering=0) as file:  # noqa: ASYNC230, PTH123 - one short append
            file.write(line.encode())
