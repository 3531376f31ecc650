"""The application that the bench serves: functions that do nothing, take a little while, or say when they began."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any, Final

from foliot.sdk.context import Context
from foliot.sdk.worker import Worker

worker = Worker()
BRIEFLY: Final = 0.01
"""Seconds that `brief` takes: a hundred at once are ten thousand a second."""
_notes: list[tuple[float, float, float]] = []
_let_go: list["asyncio.Task[None]"] = []


@worker.task
async def noop(ctx: Context, payload: Any) -> None:
    """Cost nothing: what is measured is everything around it."""


@worker.task
async def note(ctx: Context, payload: Any) -> None:
    """Write down when the first line was reached, and which instant it was for."""
    _note(ctx, payload.get("sent", 0))


@worker.task
async def brief(ctx: Context, payload: Any) -> None:
    """Take a little while, so that work piles up while processors are free. Notes only those that were timed."""
    if sent := payload.get("sent"):
        _note(ctx, sent)
    await asyncio.sleep(BRIEFLY)


@worker.task
async def linger(_: Context, __: Any) -> None:
    """Wait, like all the others, until the bench lets go."""
    if not _let_go:
        _let_go.append(asyncio.get_running_loop().create_task(_until_let_go()))
    await asyncio.shield(_let_go[0])


def _note(ctx: Context, sent: float) -> None:
    _notes.append((sent, ctx.scheduled_at.timestamp(), time.time()))
    if len(_notes) == 1:
        asyncio.get_running_loop().call_later(0.3, _write_down)


def _write_down() -> None:
    """Later, so that writing does not slow down what is being measured."""
    if path := os.environ.get("FOLIOT_BENCH_NOTES"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(f"{sent} {at} {began}\n" for sent, at, began in _notes)
    _notes.clear()


async def _until_let_go() -> None:
    """Until there is a file beside the notes."""
    path = let_go_file(Path(os.environ["FOLIOT_BENCH_NOTES"]))
    while not path.exists():  # noqa: ASYNC110 - told by another process
        await asyncio.sleep(0.1)


def let_go_file(notes: Path) -> Path:
    return notes.with_suffix(".go")
