"""When a client sends a request again, and when it tells its caller."""

import uuid
from datetime import timedelta
from typing import Final

import msgspec

from foliot.domain.retry import Again, Backoff, decide
from foliot.kit.chance import Chance, fair
from foliot.kit.clock import Steady, steady
from foliot.sdk.errors import ApiError, QuotaExceeded, Unreachable
from foliot.sdk.protocol import Request

_BACKOFF: Final = Backoff(timedelta(milliseconds=200), 2.0, timedelta(seconds=5))
_PASSING: Final = frozenset({429, 502, 503, 504})
"""Statuses that speak of the moment, not of the request; 502 and 504 are what proxies say of an API that restarts."""
_FAIR: Final = fair()


class Patience(msgspec.Struct, frozen=True):
    """How long a call may take in all, in seconds, and how often it is sent again."""

    timeout: float = 30
    max_retries: int = 3

    def at_most(self, seconds: float | None) -> "Patience":
        if seconds is None or seconds >= self.timeout:
            return self
        return msgspec.structs.replace(self, timeout=seconds)


class Tries:
    """The tries of one call. A change gets an idempotency key, the same for each of them, so that it is made once."""

    def __init__(self, request: Request, patience: Patience, clock: Steady = steady, chance: Chance = _FAIR) -> None:
        needs_key = request.is_change and request.key is None
        self.request = msgspec.structs.replace(request, key=uuid.uuid4().hex) if needs_key else request
        self._max_retries = patience.max_retries
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._end = clock() + patience.timeout

    @property
    def time_left(self) -> float:
        """Seconds for the next try."""
        return max(self._end - self._clock(), 0.001)

    def pause_after(self, error: ApiError) -> float:
        """Seconds to wait before the next try; raises `error` if there is to be none."""
        self._failures += 1
        verdict = decide(
            failures=self._failures,
            max_retries=self._max_retries,
            backoff=_BACKOFF,
            permanent=not self._may_repeat(error),
            retry_after=None if error.retry_after is None else timedelta(seconds=error.retry_after),
            chance=self._chance(),
        )
        if not isinstance(verdict, Again) or verdict.delay.total_seconds() >= self.time_left:
            raise error
        return verdict.delay.total_seconds()

    def _may_repeat(self, error: ApiError) -> bool:
        if isinstance(error, Unreachable):
            return not (self.request.once and error.was_sent)
        if isinstance(error, QuotaExceeded):
            return False
        # What refuses for lack of room has done nothing; what is unavailable may have done it, and lost the answer.
        return error.status == 429 if self.request.once else error.status in _PASSING
