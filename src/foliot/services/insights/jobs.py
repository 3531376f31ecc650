"""Jobs as people see them, and as their owners might have written them."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec

from foliot.domain.calendar import Calendar
from foliot.domain.ids import encode
from foliot.domain.job import Draft, Gate, Kind, Overlap
from foliot.domain.schedule import calendar_of, next_fire, parse_key
from foliot.domain.states import STATUS_OF, State, Status
from foliot.services.insights.words import concurrency_of, delivery_word
from foliot.store.fleet import LEASE
from foliot.store.reading import JobRow
from foliot.wire.calendars import NO_CALENDARS, Calendars
from foliot.wire.graphs import need_bodies
from foliot.wire.job_views import JobView, LastRun
from foliot.wire.jobs import JobBody, draft_of, usual_end, usual_retries
from foliot.wire.retries import backoff_body, rule_bodies

_SNAKE = dict(zip(JobView.__struct_encode_fields__, JobView.__struct_fields__, strict=True))
_BODY_FIELDS = frozenset(JobBody.__struct_encode_fields__)


def job_view(tenant: str, row: JobRow, calendars: Mapping[str, Calendar] = MappingProxyType({})) -> JobView:
    """A job for its owner; `calendars` by digest has the one that it follows."""
    spec = row.spec
    return JobView(
        job_id=encode("job", row.id),
        tenant=tenant,
        name=row.name,
        key=row.key,
        status=row.status,
        schedule_type=Kind(row.kind).word,
        handler=msgspec.to_builtins(spec.handler),
        payload=msgspec.Raw(row.payload),
        next_run_at=_next_run(row, calendars),
        priority=spec.priority.name.lower(),
        queue=spec.queue,
        requires=list(spec.labels) or msgspec.UNSET,
        labels=row.labels,
        max_retries=spec.max_retries,
        backoff=backoff_body(spec.backoff),
        retry=rule_bodies(spec.rules) or msgspec.UNSET,
        timeout_seconds=spec.timeout.total_seconds(),
        delivery=delivery_word(spec),
        on_disconnect="stop" if spec.stops_when_cut_off else "finish",
        concurrency=concurrency_of(spec),
        overlap=Overlap.stored(row.overlap, exclusive=row.exclusive),
        depends_on=need_bodies(row.parents, row.conditions) or msgspec.UNSET,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_run=_last_run(row),
        holds_by=None if row.paused_at is None else row.paused_at + LEASE,
        **{_SNAKE[name]: value for name, value in row.timing.items()},
    )


def draft_again(tenant: int, row: JobRow, calendars: Calendars = NO_CALENDARS) -> Draft:
    """The definition that a stored job was made from, by what `calendars` say now."""
    return draft_of(msgspec.convert(body_of(row), JobBody), tenant, calendars)


def body_of(row: JobRow) -> dict[str, Any]:
    """A stored job as its owner might have written it: what a PATCH is laid over.

    What depends on delivery or limit, is as usual and was not written by its owner is left out, so that it follows a
    change of either. Retries that were given up with at-most-once stay given up: nobody asked for them.
    """
    view = msgspec.to_builtins(job_view("", row), builtin_types=(msgspec.Raw,))
    at_most_once = row.spec.is_at_most_once
    usual = usual_end(at_most_once=at_most_once, one_by_one=row.spec.limit == 1)
    is_said = row.spec.end_is_said is not msgspec.UNSET or view["onDisconnect"] != usual
    implied = set() if is_said else {"onDisconnect"}
    if not at_most_once and row.spec.max_retries == usual_retries(at_most_once=False):
        implied.add("maxRetries")
    return {name: value for name, value in view.items() if name in _BODY_FIELDS - implied}


def _next_run(row: JobRow, calendars: Mapping[str, Calendar]) -> Any:
    if row.gate != Gate.OPEN or row.status in {Status.COMPLETED, Status.FAILED}:
        return None
    if row.kind == Kind.ONE_TIME:
        return row.timing.get("scheduleAt") if row.status in {Status.PENDING, Status.BLOCKED} else None
    if row.schedule_key is None or row.after is None or row.next_at is None:
        return None
    following: datetime | None = row.next_at
    if row.next_at <= row.after:
        if calendar_of(row.schedule_key) not in {None, *calendars}:
            return None  # nobody asks: only the definition is of interest
        following = next_fire(parse_key(row.schedule_key, calendars), row.after)
    ended = following is not None and row.until is not None and following > row.until
    return None if ended else following


def _last_run(row: JobRow) -> LastRun | None:
    if row.last_run is None or row.last_state is None or row.last_scheduled_at is None or row.last_finished_at is None:
        return None
    return LastRun(
        encode("run", row.last_run),
        STATUS_OF[State(row.last_state)],
        row.last_scheduled_at,
        row.last_started_at,
        row.last_finished_at,
        row.last_error,
    )
