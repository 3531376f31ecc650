"""What a handler is told about its attempt, and what it may say back."""

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import structlog

from foliot.domain.ids import encode


class Permanent(Exception):  # noqa: N818 - reads aloud: "raise Permanent"
    """Raised by a handler to say that trying again is no use: the run becomes a dead letter at once."""


class Context:
    """One attempt, as its handler sees it."""

    def __init__(
        self,
        *,
        run: int,
        job: int | None,
        name: str,
        attempt: int,
        fence: int,
        scheduled_at: datetime,
        started_at: datetime,
        timeout: timedelta,
    ) -> None:
        self._run = run
        self._job = job
        self._timeout = timeout
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
