"""The application that the bench serves: functions that do nothing, or only say when they began."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from foliot.sdk.context import Context
from foliot.sdk.worker import Worker

worker = Worker()
_notes: list[tuple[float, float, float]] = []


@worker.task
async def noop(ctx: Context, payload: Any) -> None:
    """Cost nothing: what is measured is everything around it."""


@worker.task
async def note(ctx: Context, payload: Any) -> None:
    """Write down when the first line was reached, and which instant it was for."""
    _notes.append((payload.get("sent", 0), ctx.scheduled_at.timestamp(), time.time()))
    if len(_notes) == 1:
        asyncio.get_running_loop().call_later(0.3, _write_down)


def _write_down() -> None:
    """Later, so that writing does not slow down what is being measured."""
    if path := os.environ.get("FOLIOT_BENCH_NOTES"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(f"{sent} {at} {began}\n" for sent, at, began in _notes)
    _notes.clear()
