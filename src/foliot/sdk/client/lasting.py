# Written by `make sdk` from sdk/aio/lasting.py: change that.
"""What goes on for a while, and can be waited for: runs and operations."""

from typing import Any, ClassVar, Self

from foliot.sdk import calls
from foliot.sdk.client.connection import Connection
from foliot.sdk.client.transport import pause
from foliot.sdk.errors import ApiError, RunFailed, TooManyRequests, Unavailable, Unreachable
from foliot.sdk.records import LastingRecord, OperationRecord, Record, RunRecord
from foliot.sdk.watching import looks, too_long


class Lasting(LastingRecord):
    """Something as it stood when it was read; `refresh` reads it again."""

    _PLACE: ClassVar[str]

    def __init__(self, values: dict[str, Any], connection: Connection) -> None:
        super().__init__(values)
        self._connection = connection

    def refresh(self) -> Self:
        return self._read(None)

    def _read(self, within: float | None) -> Self:
        self.values = self._connection.request(calls.get(self._PLACE, self.id), within=within)
        return self

    def _watch(self, timeout: float) -> None:
        """Until its end. That Foliot cannot answer for a while is no reason to give up before the time is over."""
        trouble: ApiError | None = None
        for look in looks(timeout):
            try:
                if self._read(look.within).is_over:
                    return
                trouble = None
            except (TooManyRequests, Unavailable, Unreachable) as error:
                trouble = error
            pause(look.pause_after(trouble))
        raise too_long(self.id, self.status, timeout, trouble) from trouble


class Run(RunRecord, Lasting):
    """A run as it stood when it was read; `wait` and `refresh` read it again."""

    _PLACE = "runs"

    def wait(self, timeout: float = 300, *, check: bool = True) -> Self:
        """Wait for its end, up to `timeout` seconds, then TimeoutError.

        An end other than success raises RunFailed, which says why; with `check=False` look at `status`.
        """
        self._watch(timeout)
        if check and self.status != "completed":
            raise RunFailed(self)
        return self

    def cancel(self) -> Self:
        """Have it end: at once if it waits, by `stops_by` if a worker has it; `status` says how it stands."""
        self.values = self._connection.request(calls.cancel_run(self.id))
        return self

    def retry(self) -> Self:
        """Let it go on, if it has used its attempts."""
        self.values = self._connection.request(calls.retry_run(self.id))
        return self

    def explain(self) -> Record:
        """Why it does not start: `sentence`, `blocking`, `ahead`, `estimated_start`, and all `gates`."""
        return Record(self._connection.request(calls.get("runs", self.id, "explain")))


class Operation(OperationRecord, Lasting):
    """A back-fill, replay or discard as it stood when it was read; `wait` and `refresh` read it again."""

    _PLACE = "operations"

    def wait(self, timeout: float = 300) -> Self:
        """Wait for its end, whichever that is, up to `timeout` seconds, then TimeoutError."""
        self._watch(timeout)
        return self
