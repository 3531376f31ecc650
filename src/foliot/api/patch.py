"""PATCH of a job: a field given replaces the job's own, null takes it away."""

from typing import Any

import msgspec

from foliot.domain.errors import InvalidField
from foliot.services.insights.jobs import body_of
from foliot.store.reading import JobRow
from foliot.wire.jobs import JobBody
from foliot.wire.timing import REPLACES, TAKES_ALONG, said_in


def merged(row: JobRow, patch: bytes) -> JobBody:
    """The job with changes laid over it."""
    changes = msgspec.json.decode(patch, type=dict[str, msgspec.Raw])
    if "key" in changes:
        raise InvalidField("key", "a job's key cannot be changed", "create another job")
    body = body_of(row)
    for name, value in changes.items():
        if _is_given(value) or name in body:
            for other in (REPLACES if _is_given(value) else TAKES_ALONG).get(name, ()):
                body.pop(other, None)
            for other in _said_by(name, value, body):
                body.pop(other, None)
    body.update(changes)
    whole = {name: value for name, value in body.items() if name == "payload" or _is_given(value)}
    return msgspec.json.decode(msgspec.json.encode(whole), type=JobBody)


def _said_by(name: str, value: msgspec.Raw, body: dict[str, Any]) -> list[str]:
    """Fields of the job that a new recurrence speaks about itself: `R5/…`, COUNT, UNTIL."""
    if name not in {"every", "rrule"} or not _is_given(value):
        return []
    written = msgspec.json.decode(value)
    if not isinstance(written, str):
        return []
    said = said_in({name: written, "timezone": body.get("timezone")})
    # A number says anew when it is over, whichever field an earlier one became.
    is_spoken_of = {
        "scheduleAt": said.start is not None,
        "endsAt": said.until is not None or said.number is not None,
        "maxRuns": said.number is not None,
    }
    return [field for field, is_so in is_spoken_of.items() if is_so]


def _is_given(value: Any) -> bool:
    return not isinstance(value, msgspec.Raw) or bytes(value) != b"null"
