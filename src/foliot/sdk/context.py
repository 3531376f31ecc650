"""What a handler is told about its attempt, and what it may say back."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import cached_property
from types import TracebackType
from typing import Any, Final, NoReturn

import structlog

from foliot.domain.duration import parse_duration
from foliot.domain.errors import Conflict, InvalidField
from foliot.domain.ids import encode

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


class NotHere(Exception):  # noqa: N818 - reads aloud: "raise NotHere"
    """What a handler asked for cannot be had where it runs."""


Begin = Callable[..., AbstractAsyncContextManager[Any]]
"""Begins a transaction that ends with the success of the attempt."""


def no_transactions(reason: str) -> Begin:
    """For handlers that can have none: says why."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotHere(reason)

    return refuse


class Transaction:
    """`async with ctx.transaction() as connection`; see `Context.transaction`."""

    def __init__(self, context: "Context", begun: AbstractAsyncContextManager[Any]) -> None:
        self._context = context
        self._begun = begun

    async def __aenter__(self) -> Any:
        return await self._begun.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        swallowed = await self._begun.__aexit__(kind, error, trace)
        self._context._settled = error is None  # noqa: SLF001 - they are one thing in two parts
        return swallowed

    def __enter__(self) -> NoReturn:
        raise TypeError("write `async with ctx.transaction()`, in an async function")

    def __exit__(self, *_: object) -> None: ...


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
    ) -> None:
        self._run = run
        self._job = job
        self._timeout = timeout
        self._begin = begin or no_transactions("ctx.transaction() is for handlers that a worker runs")
        self._settled = False
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
        """When the attempt will be stopped."""
        return self.started_at + self._timeout

    @cached_property
    def log(self) -> Any:
        """A logger that knows which run it speaks of."""
        return structlog.get_logger("handler").bind(run=self.run, attempt=self.attempt)

    def transaction(self, *, isolation: str | None = None) -> Transaction:
        """A database connection (asyncpg's) whose writes are committed together with the success of this run.

        At the end of the block both are on disk, or, after an exception, neither. If another attempt has taken over
        meanwhile, the writes are taken back and FenceLost is raised. What the handler does after the block is not
        part of the run any more. `isolation`: `read_committed`, `repeatable_read` or `serializable`.
        """
        if self._settled:
            raise Conflict("the run has been settled", "one transaction ends it: put all writes into it")
        return Transaction(self, self._begin(isolation=isolation))
