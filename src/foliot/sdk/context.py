"""What a handler is told about its attempt, and what it may say back."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

import msgspec
import structlog

from foliot.domain.duration import parse_duration
from foliot.domain.errors import Conflict, InvalidField
from foliot.domain.ids import encode
from foliot.domain.report import pack_checkpoint, progress_of
from foliot.kit.loop import is_on_a_loop
from foliot.sdk.desk import NOBODY, Desk
from foliot.sdk.settling import Begin, Transaction, no_transactions

SHORTEST_SNOOZE: Final = timedelta(seconds=1)
"""Each snooze is a row of history: whoever asks for less comes back after this."""
LONGEST_SNOOZE: Final = timedelta(days=30)


class Permanent(Exception):  # noqa: N818 - reads aloud: "raise Permanent"
    """Raised by a handler to say that trying again is no use: the run becomes a dead letter at once."""


class Snooze(Exception):  # noqa: N818 - reads aloud: "raise Snooze"
    """Raised by a handler to be called again after `delay` (a timedelta, seconds or `PT15M`; 1 second to 30 days).

    Nothing failed: no attempt and no retry is spent, however often it is raised. `reason` is shown to people.
    """

    def __init__(self, delay: str | float | timedelta, reason: str = "") -> None:
        super().__init__(delay, reason)
        asked = delay if isinstance(delay, timedelta) else parse_duration(delay, "delay")
        if asked > LONGEST_SNOOZE:
            raise InvalidField(
                "delay", f"is longer than {LONGEST_SNOOZE.days} days", "submit another run for that time"
            )
        self.delay = max(asked, SHORTEST_SNOOZE)
        self.reason = str(reason)


class Context:
    """One attempt, as its handler sees it."""

    def __init__(
        self,
        run: int,
        job: int | None,
        name: str,
        attempt: int,
        fence: int,
        scheduled_at: datetime,
        started_at: datetime,
        timeout: timedelta,
        begin: Begin | None = None,
        desk: Desk = NOBODY,
        key: Any = None,
    ) -> None:
        """`desk` knows the attempt by its `key`."""
        self._run = run
        self._job = job
        self._timeout = timeout
        self._begin = begin or no_transactions("ctx.transaction() is for handlers that a worker runs")
        self._settled = False
        self._desk = desk
        self._key = key
        self._extended: datetime | None = None
        self.name = name
        self.attempt = attempt
        """1 for the first try."""
        self.fence = fence
        """Rises with every claim of this run: pass it to whatever you write to, and refuse lower ones there."""
        self.scheduled_at = scheduled_at
        self.started_at = started_at

    @cached_property
    def run(self) -> str:
        """The run's id; the same for every attempt, so it serves as an idempotency key."""
        return encode("run", self._run)

    @cached_property
    def job(self) -> str | None:
        return None if self._job is None else encode("job", self._job)

    @property
    def deadline(self) -> datetime:
        """When the attempt will be stopped: its time is up, or its worker has to end."""
        own, leaves_by = self._extended or self.started_at + self._timeout, self._desk.leaves_by
        return own if leaves_by is None else min(own, leaves_by)

    @property
    def time_left(self) -> timedelta:
        return max(self.deadline - self._desk.now(), timedelta())

    @property
    def cancelled(self) -> bool:
        """Whether the handler is to end now: somebody has asked for it, its time is up, or its worker must give it up.

        A coroutine is told by a CancelledError besides. A plain function has to ask; one that saw this may return.
        """
        return self._desk.why_stopped(self._key) is not None

    @property
    def stop_reason(self) -> str | None:
        """Why it is `cancelled`, for people."""
        return self._desk.why_stopped(self._key)

    @property
    def draining(self) -> bool:
        """Whether the worker is about to leave: a good moment for a checkpoint, and to end by `raise Snooze(1)`."""
        return self._desk.is_draining

    def heartbeat(self) -> datetime:
        """Say that the work goes on: the time-out begins anew, up to seven days in all. Returns the new `deadline`."""
        self._extended = self._desk.extend(self._key) or self._extended
        return self.deadline

    def progress(
        self,
        fraction: float | None = None,
        message: str | None = None,
        *,
        done: float | None = None,
        total: float | None = None,
    ) -> None:
        """Tell how far the work is: a fraction from 0 to 1, or `done` out of `total`, with a message for people.

        Call it as often as you like: the last word is kept, about once a second, and stays with the attempt.
        """
        self._desk.note(self._key, progress_of(fraction, message, done, total))

    def checkpoint(self, state: Any) -> Any:
        """Keep `state`, up to 256 KiB of JSON, for the next attempt; it is on disk when this returns.

        In a coroutine: `await ctx.checkpoint(state)`. If another attempt has taken over meanwhile, nothing is kept and
        FenceLost is raised.
        """
        return _outcome(self._desk.save(self._key, pack_checkpoint(state)))

    def last_checkpoint(self) -> Any:
        """The state that was saved last, by this attempt or an earlier one of the run; None if there is none.

        In a coroutine: `await ctx.last_checkpoint()`.
        """
        return _outcome(self._desk.last(self._key), _unpacked)

    @cached_property
    def log(self) -> Any:
        """A logger that knows which run it speaks of."""
        return structlog.get_logger("handler").bind(run=self.run, attempt=self.attempt)

    def transaction(self, *, isolation: str | None = None) -> Transaction:
        """A database connection (asyncpg's) whose writes are committed together with the success of this run.

        At the end of the block both are on disk, or, after an exception, neither. If another attempt has taken over
        meanwhile, the writes are taken back and FenceLost is raised. What the handler does after the block is not
        part of the run any more. `isolation`: `read_committed`, `repeatable_read` or `serializable`.

        In a coroutine: `async with ctx.transaction()`; a plain function leaves out `async`, here and in every call.
        """
        if self._settled:
            raise Conflict("the run has been settled", "one transaction ends it: put all writes into it")
        return Transaction(self._begin(isolation=isolation), self._desk, self._key, self._settle)

    def _settle(self) -> None:
        self._settled = True


def _unpacked(state: bytes | None) -> Any:
    return None if state is None else msgspec.json.decode(state)


def _outcome(future: "Future[Any]", read: Callable[[Any], Any] = lambda value: value) -> Any:
    """Something to await if a loop runs here, which must not be kept waiting; else the result itself."""
    return _awaited(future, read) if is_on_a_loop() else read(future.result())


async def _awaited(future: "Future[Any]", read: Callable[[Any], Any]) -> Any:
    return read(await asyncio.wrap_future(future))
