"""What a handler is told about its attempt, and what it may say back."""

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

import structlog

from foliot.domain.duration import parse_duration
from foliot.domain.errors import InvalidField
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
