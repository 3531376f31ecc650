"""What calls take by name, in Python's spelling. A test compares them with the fields of the wire."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

if TYPE_CHECKING:
    from foliot.sdk.records import Job

Handler = str | dict[str, Any] | list[str] | tuple[str, ...]
"""A web address, a function's name, a list of words (a command), or an object as the API takes it."""
Duration = str | float | timedelta
"""`PT15M`, seconds, or a timedelta."""
Moment = datetime | str
"""Aware, or as in RFC 3339."""


class Policy(TypedDict, total=False):
    """How a run is to go. What is None is left out: see the guides for what holds then."""

    priority: Literal["critical", "high", "normal", "low", "bulk"] | int | None
    queue: str | None
    requires: Sequence[str] | None
    max_retries: int | None
    backoff: Mapping[str, Any] | None
    retry: Sequence[Mapping[str, Any]] | None
    timeout_seconds: float | None
    delivery: Literal["atLeastOnce", "atMostOnce"] | None
    on_disconnect: Literal["finish", "stop"] | None
    concurrency: int | Mapping[str, Any] | None


class NewRun(Policy, total=False):
    """One of many runs: what `submit` takes."""

    handler: Required[Handler]
    payload: Any
    delay: Duration | None
    at: Moment | None


class JobFields(Policy, total=False):
    """What a job has besides its name and its handler. To change one, None takes a field away."""

    payload: Any
    cron_expression: str | None
    timezone: str | None
    dst: Mapping[str, str] | None
    every: Duration | None
    rrule: str | None
    when: str | None
    schedule_at: Moment | None
    ends_at: Moment | None
    max_runs: int | None
    catch_up: Mapping[str, Any] | None
    jitter: Duration | None
    calendar: str | Mapping[str, Any] | None
    labels: Mapping[str, str] | None
    overlap: Literal["skip", "queueOne", "queue", "allow", "cancelPrevious"] | None
    depends_on: "Sequence[str | Mapping[str, Any] | Job] | None"


class NewJob(JobFields, total=False):
    key: str | None


class JobChanges(NewJob, total=False):
    name: str
    handler: Handler
