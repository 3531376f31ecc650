"""Jobs and calendars in one form each, so that what a file says and what the API answers can be compared."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from foliot.api.problems import field_error
from foliot.cli.difference import changes
from foliot.domain.calendar import Calendar, Named
from foliot.domain.errors import InvalidField
from foliot.wire.calendars import CalendarBody, Calendars, calendar_of_body, use_of
from foliot.wire.jobs import JobBody, draft_of
from foliot.wire.retries import backoff_body, rule_bodies

OWNER: Final = "foliot/owner"
"""The label that says who declared a job: only that owner's `foliot apply` changes or deletes it."""
_JOB_FIELDS: Final = frozenset(JobBody.__struct_encode_fields__)
_CALENDAR_FIELDS: Final = frozenset(CalendarBody.__struct_encode_fields__)
_ANY_TENANT: Final = 0
"""Of what an H of a cron expression is hashed from; it is not compared."""


class Form(NamedTuple):
    written: dict[str, Any]
    """As it goes over the wire."""
    whole: dict[str, Any]
    """Every default filled in."""


def job_form(fields: Mapping[str, Any]) -> Form:
    """A job as a file declares it or as the API shows it; InvalidField if no API would take it."""
    written = {name: value for name, value in fields.items() if value is not None or name == "payload"}
    body: JobBody = _decoded(written, JobBody)
    calendars = {} if body.calendar is None else {use_of(body.calendar).name: Named(0, Calendar("UTC"))}
    draft = draft_of(body, _ANY_TENANT, Calendars(calendars))
    spec = draft.spec
    whole = {
        "name": draft.name,
        "handler": spec.handler,
        "payload": msgspec.json.decode(draft.payload),
        **draft.timing,
        "dependsOn": {need.job: need.when.name.lower() for need in draft.depends_on},
        "priority": spec.priority.name.lower(),
        "queue": spec.queue,
        "requires": spec.labels,
        "labels": {name: value for name, value in draft.labels.items() if name != OWNER},
        "maxRetries": spec.max_retries,
        "backoff": backoff_body(spec.backoff),
        "retry": rule_bodies(spec.rules),
        "timeoutSeconds": spec.timeout.total_seconds(),
        "delivery": "atMostOnce" if spec.is_at_most_once else "atLeastOnce",
        "onDisconnect": "stop" if spec.stops_when_cut_off else "finish",
        "concurrency": None if isinstance(spec.concurrency, msgspec.UnsetType) else spec.concurrency,
        "overlap": draft.overlap,
    }
    return Form(written, msgspec.to_builtins(whole))


def job_form_of_view(view: Mapping[str, Any], keys: Mapping[str, str]) -> Form:
    """The same of a job that there is; what it depends on is named by key where `keys` (by id) knows one."""
    fields = {name: value for name, value in view.items() if name in _JOB_FIELDS}
    parents = [{**need, "job": keys.get(need["job"], need["job"])} for need in view.get("dependsOn", [])]
    return job_form({**fields, "dependsOn": parents})


def calendar_form(fields: Mapping[str, Any]) -> Form:
    written = {name: value for name, value in fields.items() if value is not None}
    _, whole = calendar_of_body(_decoded(written, CalendarBody))
    return Form(written, whole)


def calendar_form_of_view(view: Mapping[str, Any]) -> Form:
    return calendar_form({name: value for name, value in view.items() if name in _CALENDAR_FIELDS})


def needs(form: Form) -> list[str]:
    """What a job depends on, by id or key."""
    return list(form.whole["dependsOn"])


def follows(form: Form) -> str | None:
    """The name of the calendar that a job follows."""
    calendar = form.written.get("calendar")
    return calendar["name"] if isinstance(calendar, dict) else calendar


def differences(before: Form, after: Form) -> dict[str, tuple[Any, Any]]:
    """What changes, by the path of the field: what is there, and what is wanted instead; None where nothing is."""
    return changes(before.whole, after.whole)


def _decoded(fields: Mapping[str, Any], type_: Any) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(fields), type=type_)
    except msgspec.ValidationError as error:
        told = field_error(error, (type_,))
        raise InvalidField(told.field, told.message, told.hint) from None
    except msgspec.DecodeError as error:
        raise InvalidField("payload", str(error), "write what JSON can say") from None
