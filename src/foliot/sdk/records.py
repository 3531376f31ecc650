"""Answers of the API as objects: fields as attributes in Python's spelling, instants as datetimes."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar, Final, Self, get_args, get_type_hints

from foliot.sdk.protocol import camel

_OVER: Final = frozenset({"completed", "failed", "cancelled", "skipped", "missed"})
_SHOWN: Final = ("operationId", "jobId", "runId", "name", "status")


class Record:
    """What was answered, as it stood then; the whole of it, as it came, is in `values`."""

    _INSTANTS: ClassVar[frozenset[str]] = frozenset()
    """Fields that are declared to be instants."""

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls)
        cls._INSTANTS = frozenset(name for name, hint in hints.items() if datetime in (hint, *get_args(hint)))

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        # Asked of `__dict__`, because copy and pickle look for attributes before there are any.
        values = self.__dict__.get("values", {})
        try:
            value = values[camel(name)]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}") from None
        return datetime.fromisoformat(value) if name in self._INSTANTS and value is not None else value

    def __repr__(self) -> str:
        shown = {name: self.values[name] for name in _SHOWN if name in self.values}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class Job(Record):
    """A job as it stood when it was read."""

    job_id: str
    tenant: str
    name: str
    key: str | None
    status: str
    schedule_type: str
    handler: dict[str, Any]
    payload: Any
    next_run_at: datetime | None
    priority: str
    queue: str
    labels: dict[str, str]
    max_retries: int
    timeout_seconds: float
    delivery: str
    overlap: str
    version: int
    created_at: datetime
    updated_at: datetime
    last_run: dict[str, Any] | None

    @property
    def id(self) -> str:
        return str(self.values["jobId"])


class Calendar(Record):
    """A calendar as it stood when it was read."""

    @classmethod
    def imported(cls, answer: dict[str, Any]) -> Self:
        """With what an import says besides: `events` that were taken over, lines that are `unread`."""
        return cls({**answer["calendar"], "events": answer["events"], "unread": answer["unread"]})


class LastingRecord(Record):
    """What goes on for a while, and ends."""

    status: str

    @property
    def id(self) -> str:
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        return self.values.get("status") in _OVER


class RunRecord(LastingRecord):
    """A run as it stood when it was read. Of one that was only just handed in, `id` and `status` are known."""

    run_id: str
    job_id: str | None
    status: str
    state: str
    handler: str
    queue: str
    priority: str
    delivery: str
    scheduled_at: datetime
    due_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    error_message: str | None
    error_class: str | None
    worker_id: str | None
    waiting_for: str | None
    cancel_requested_at: datetime | None
    stops_by: datetime | None
    progress: dict[str, Any] | None
    payload: Any

    @property
    def id(self) -> str:
        return str(self.values["runId"])

    @property
    def result(self) -> Any:
        """What its handler returned, if that was small enough to be kept; None if nothing, or if it has not ended."""
        return self.values.get("result")


class OperationRecord(LastingRecord):
    """A back-fill, replay or discard as it stood when it was read."""

    operation_id: str | None
    kind: str
    name: str
    job_id: str | None
    status: str
    arguments: dict[str, Any]
    progress: dict[str, int]
    message: str | None
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    estimated_end_at: datetime | None

    @property
    def id(self) -> str:
        return str(self.values["operationId"])

    @property
    def is_over(self) -> bool:
        """A cancelled one is over when the last of its runs has ended; a dry run always is."""
        return self.values["finishedAt"] is not None or self.values["operationId"] is None


class Fires(list[dict[str, Any]]):
    """Fires to come, and the edition of the time zone database that they were reckoned with."""

    def __init__(self, items: Iterable[dict[str, Any]], zone_data: str) -> None:
        super().__init__(items)
        self.zone_data = zone_data
