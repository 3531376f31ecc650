"""What goes on for a while, and can be waited for: runs and operations."""

from typing import Any, ClassVar, Self

from foliot.sdk import calls
from foliot.sdk.aio.connection import AsyncConnection
from foliot.sdk.aio.transport import pause
from foliot.sdk.errors import ApiError, RunFailed, TooManyRequests, Unavailable, Unreachable
from foliot.sdk.records import LastingRecord, OperationRecord, Record, RunRecord
from foliot.sdk.watching import looks, too_long


class AsyncLasting(LastingRecord):
    """Something as it stood when it was read; `refresh` reads it again."""

    _PLACE: ClassVar[str]

    def __init__(self, values: dict[str, Any], connection: AsyncConnection) -> None:
        super().__init__(values)
        self._connection = connection

    async def refresh(self) -> Self:
        return await self._read(None)

    async def _read(self, within: float | None) -> Self:
        self.values = await self._connection.request(calls.get(self._PLACE, self.id), within=within)
        return self

    async def _watch(self, timeout: float) -> None:  # noqa: ASYNC109 - as `wait`
        """Until its end. That Foliot cannot answer for a while is no reason to give up before the time is over."""
        trouble: ApiError | None = None
        for look in looks(timeout):
            try:
                if (await self._read(look.within)).is_over:
                    return
                trouble = None
            except (TooManyRequests, Unavailable, Unreachable) as error:
                trouble = error
            await pause(look.pause_after(trouble))
        raise too_long(self.id, self.status, timeout, trouble) from trouble


class AsyncRun(RunRecord, AsyncLasting):
    """A run as it stood when it was read; `wait` and `refresh` read it again."""

    _PLACE = "runs"

    async def wait(self, timeout: float = 300, *, check: bool = True) -> Self:  # noqa: ASYNC109 - both clients say so
        """Wait for its end, up to `timeout` seconds, then TimeoutError.

        An end other than success raises RunFailed, which says why; with `check=False` look at `status`.
        """
        await self._watch(timeout)
        if check and self.status != "completed":
            raise RunFailed(self)
        return self

    async def cancel(self) -> Self:
        """Have it end: at once if it waits, by `stops_by` if a worker has it; `status` says how it stands."""
        self.values = await self._connection.request(calls.cancel_run(self.id))
        return self

    async def retry(self) -> Self:
        """Let it go on, if it has used its attempts."""
        self.values = await self._connection.request(calls.retry_run(self.id))
        return self

    async def explain(self) -> Record:
        """Why it does not start: `sentence`, `blocking`, `ahead`, `estimated_start`, and all `gates`."""
        return Record(await self._connection.request(calls.get("runs", self.id, "explain")))


class AsyncOperation(OperationRecord, AsyncLasting):
    """A back-fill, replay or discard as it stood when it was read; `wait` and `refresh` read it again."""

    _PLACE = "operations"

    async def wait(self, timeout: float = 300) -> Self:  # noqa: ASYNC109 - both clients say so
        """Wait for its end, whichever that is, up to `timeout` seconds, then TimeoutError."""
        await self._watch(timeout)
        return self
