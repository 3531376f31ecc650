"""Answers of the API as objects: fields as attributes in Python's spelling."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final, Self, TypeVar

from foliot.sdk.protocol import camel

_OVER: Final = frozenset({"completed", "failed", "cancelled", "skipped", "missed"})
_SHOWN: Final = ("operationId", "jobId", "runId", "name", "status")
Item = TypeVar("Item")


class Record:
    """What was answered, as it stood then; the whole of it is in `values`."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        # Asked of `__dict__`, because copy and pickle look for attributes before there are any.
        values = self.__dict__.get("values", {})
        try:
            return values[camel(name)]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}") from None

    def __repr__(self) -> str:
        shown = {name: self.values[name] for name in _SHOWN if name in self.values}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class Job(Record):
    """A job as it stood when it was read."""

    @property
    def id(self) -> str:
        return str(self.values["jobId"])


class Calendar(Record):
    """A calendar as it stood when it was read."""

    @classmethod
    def imported(cls, answer: dict[str, Any]) -> Self:
        """With what an import says besides: `events` that were taken over, lines that are `unread`."""
        return cls({**answer["calendar"], "events": answer["events"], "unread": answer["unread"]})


class _Lasting(Record):
    """What goes on for a while, and ends."""

    _NAME = ""

    @property
    def id(self) -> str:
        return str(self.values[self._NAME])

    @property
    def is_over(self) -> bool:
        return self.values.get("status") in _OVER

    def _too_long(self, timeout: float) -> TimeoutError:
        return TimeoutError(f"{self.id} is still {self.status} after {timeout:g} s")


class _Watched(_Lasting):
    def __init__(self, values: dict[str, Any], read: Callable[[str], dict[str, Any]]) -> None:
        super().__init__(values)
        self._read = read

    def refresh(self) -> Self:
        self.values = self._read(self.id)
        return self

    def wait(self, timeout: float = 300) -> Self:
        """Wait for its end, up to `timeout` seconds, then TimeoutError."""
        end = time.monotonic() + timeout
        for pause in _pauses():
            if self.refresh().is_over:
                return self
            if time.monotonic() + pause > end:
                break
            time.sleep(pause)
        raise self._too_long(timeout)


class _AsyncWatched(_Lasting):
    def __init__(self, values: dict[str, Any], read: Callable[[str], Awaitable[dict[str, Any]]]) -> None:
        super().__init__(values)
        self._read = read

    async def refresh(self) -> Self:
        self.values = await self._read(self.id)
        return self

    async def wait(self, timeout: float = 300) -> Self:  # noqa: ASYNC109 - the same word as in _Watched
        """Wait for its end, up to `timeout` seconds, then TimeoutError."""
        end = time.monotonic() + timeout
        for pause in _pauses():
            if (await self.refresh()).is_over:
                return self
            if time.monotonic() + pause > end:
                break
            await asyncio.sleep(pause)
        raise self._too_long(timeout)


class _Run(_Lasting):
    _NAME = "runId"

    @property
    def result(self) -> Any:
        """What its handler returned, if that was small enough to be kept; None if nothing, or if it has not ended."""
        return self.values.get("result")


class Run(_Run, _Watched):
    """A run as it stood when it was read; `wait` and `refresh` read it again."""

    def __init__(
        self,
        values: dict[str, Any],
        read: Callable[[str], dict[str, Any]],
        cancel: Callable[[str], dict[str, Any]],
    ) -> None:
        super().__init__(values, read)
        self._cancel = cancel

    def cancel(self) -> Self:
        """Have it end: at once if it waits, by `stops_by` if a worker has it; `status` says how it stands."""
        self.values = self._cancel(self.id)
        return self


class AsyncRun(_Run, _AsyncWatched):
    """A run as it stood when it was read; `await` its `wait` and `refresh` to read it again."""

    def __init__(
        self,
        values: dict[str, Any],
        read: Callable[[str], Awaitable[dict[str, Any]]],
        cancel: Callable[[str], Awaitable[dict[str, Any]]],
    ) -> None:
        super().__init__(values, read)
        self._cancel = cancel

    async def cancel(self) -> Self:
        """Have it end: at once if it waits, by `stops_by` if a worker has it; `status` says how it stands."""
        self.values = await self._cancel(self.id)
        return self


class _Operation(_Lasting):
    _NAME = "operationId"

    @property
    def is_over(self) -> bool:
        """A cancelled one is over when the last of its runs has ended; a dry run always is."""
        return self.values["finishedAt"] is not None or self.values["operationId"] is None


class Operation(_Operation, _Watched):
    """A back-fill, replay or discard as it stood when it was read; `wait` and `refresh` read it again."""


class AsyncOperation(_Operation, _AsyncWatched):
    """A back-fill, replay or discard as it stood when it was read; `await` its `wait` and `refresh` to read again."""


class Items(list[Item]):
    """One page of a list; pass `next_cursor`, if there is one, as `cursor` to get the next."""

    def __init__(self, items: Iterable[Item], next_cursor: str | None) -> None:
        super().__init__(items)
        self.next_cursor = next_cursor


class Fires(list[dict[str, Any]]):
    """Fires to come, and the edition of the time zone database that they were reckoned with."""

    def __init__(self, items: Iterable[dict[str, Any]], zone_data: str) -> None:
        super().__init__(items)
        self.zone_data = zone_data


def _pauses() -> Iterator[float]:
    """Between looks: short at first, for what takes a moment; a second at most."""
    pause = 0.02
    while True:
        yield pause
        pause = min(pause * 1.5, 1.0)
