"""Errors as problem+json (RFC 9457): each leaf of the error tree is translated once, here."""

import re
from math import ceil
from typing import Any, Final

import msgspec
from starlette.responses import Response

from foliot.api.names import nearest
from foliot.api.plainly import plainly
from foliot.domain.errors import (
    Conflict,
    Cycle,
    FoliotError,
    Forbidden,
    ForeignCursor,
    InvalidField,
    NotFound,
    QuotaExceeded,
    Stale,
    Swamped,
    TooLarge,
    TooMany,
    Unauthorised,
    Unavailable,
)
from foliot.wire.problems import FieldError, Problem

_PATH: Final = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)
_NAMED: Final = re.compile(r"(?:unknown|missing required) field `([^`]+)`")

_BEARER: Final = {"WWW-Authenticate": "Bearer"}
_KINDS: Final[tuple[tuple[type[FoliotError], int, str, str, dict[str, str]], ...]] = (
    (Cycle, 400, "dependency-cycle", "Dependency cycle", {}),
    (TooLarge, 413, "too-large", "Content too large", {}),
    (NotFound, 404, "not-found", "Not found", {}),
    (Unauthorised, 401, "unauthorised", "Unauthorised", _BEARER),
    (Forbidden, 403, "forbidden", "Forbidden", {}),
    (Conflict, 409, "conflict", "Conflict", {}),
    (Unavailable, 503, "unavailable", "Unavailable", {"Retry-After": "2"}),
)
_TOO_MANY: Final[tuple[tuple[type[TooMany], str, str], ...]] = (
    (QuotaExceeded, "quota-exceeded", "Quota exceeded"),
    (Swamped, "swamped", "Too much waits"),
    (TooMany, "too-many-requests", "Too many requests"),
)
_LOOK: Final = "look at the id, and at whose key this is: each tenant sees its own"
_SEE_DOCS: Final = "see /docs for what it takes"
_INSTANT: Final = "write instants like 2026-01-31T09:00:00Z or 2026-01-31T10:00:00+01:00"
_CLEARER: Final = (
    ("timezone component", "has no offset from UTC", _INSTANT),
    ("RFC3339 encoded datetime", "is not a date and time that exists", _INSTANT),
    ("RFC3339 encoded date", "is not a date that exists", "write dates like 2026-01-31"),
    ("datetime", "", _INSTANT),
    ("unknown field", "is not a field of this call", "see /docs for the fields of this call"),
    ("Expected `int`, got `float`", "is not a whole number", "write it without a fraction: 7, not 7.0"),
    ("missing required field", "is missing", "add it"),
    ("of length >= 1", "is empty", "fill it in"),
    ("Number out of range", "is too large a number", _SEE_DOCS),
)
"""Of what msgspec says: a part, what to say instead if that is clearer, and what to do."""

_OF_COMMANDS: Final = (
    (
        "handler.argv",
        "Expected",
        "is not a list of words",
        'no shell reads it: write ["/usr/local/bin/report", "--day", "2026-11-16"], or ["/bin/sh", "-c", "…"]',
    ),
    (
        "handler.env",
        "unknown field",
        "is not the caller's to set",
        "the operator of the workers sets the environment of commands",
    ),
)
"""Fields that people try with commands, a part of what msgspec says, what to say instead, and what to do."""


def problem(
    status: int,
    kind: str,
    title: str,
    detail: str,
    *,
    hint: str = "",
    errors: list[FieldError] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    body = Problem(
        type=f"urn:foliot:problem:{kind}", title=title, status=status, detail=detail, hint=hint, errors=errors or []
    )
    return Response(msgspec.json.encode(body), status, headers, "application/problem+json")


def render(error: FoliotError) -> Response:
    if isinstance(error, InvalidField):
        return invalid(FieldError(error.field, error.message, error.hint))
    if isinstance(error, ForeignCursor):
        errors = [FieldError("cursor", error.message, error.hint)]
        return problem(400, "foreign-cursor", "No such page", error.message, hint=error.hint, errors=errors)
    if isinstance(error, Stale):
        tag = {} if error.present is None else {"ETag": f'"{error.present}"'}
        return problem(412, "stale", "Precondition failed", error.message, hint=error.hint, headers=tag)
    if isinstance(error, TooMany):
        name, title = next(told for kind, *told in _TOO_MANY if isinstance(error, kind))
        after = {"Retry-After": str(ceil(error.after))}
        return problem(429, name, title, error.message, hint=error.hint, headers=after)
    for kind, status, name, title, headers in _KINDS:
        if isinstance(error, kind):
            hint = error.hint or (_LOOK if kind is NotFound else "")
            return problem(status, name, title, error.message, hint=hint, headers=dict(headers))
    return problem(500, "internal", "Internal error", "something went wrong on our side")


def invalid(error: FieldError) -> Response:
    error = error if error.hint else FieldError(error.field, error.message, _SEE_DOCS)
    detail = f"{error.field}: {error.message}"
    return problem(422, "invalid", "Invalid request", detail, hint=error.hint, errors=[error])


def unauthorised() -> Response:
    return problem(
        401,
        "unauthorised",
        "Unauthorised",
        "this call needs a valid key",
        hint="send it as `Authorization: Bearer fol_…`; `foliot tenant create` makes one",
        headers=_BEARER,
    )


def field_error(error: msgspec.ValidationError, shapes: tuple[Any, ...] = ()) -> FieldError:
    """What msgspec says about a body or a query, with the field it speaks of and what to do.

    `shapes` are the types of both: of a name that none of them has, the nearest that they have is the hint.
    """
    message, path = str(error), ""
    if match := _PATH.fullmatch(message):
        message, path = match[1], match[2]
    place, said = path, plainly(message)
    if named := _NAMED.search(message):
        path = f"{path}.{named[1]}" if path else named[1]
    for field, part, clearer, hint in _OF_COMMANDS:
        if part in message and f".{path}".endswith(f".{field}"):
            return FieldError(path, clearer, hint)
    for part, clearer, hint in _CLEARER:
        if part in message:
            if part == "unknown field" and named and (meant := nearest(shapes, place, named[1])):
                hint = f"did you mean {' or '.join(meant)}?"  # noqa: PLW2901 - the better one
            return FieldError(path or "body", clearer or (said[0] if said else message), hint)
    if path and said is not None:
        return FieldError(path, *said)
    return FieldError(path or "body", message, _SEE_DOCS if path else "send one JSON object")
