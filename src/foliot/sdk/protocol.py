"""How requests and answers look, whichever client carries them."""

import os
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from foliot.domain.duration import format_duration
from foliot.domain.errors import FoliotError
from foliot.kit.settings import Access, find_access
from foliot.wire.codec import rfc3339
from foliot.wire.views import FieldError, Problem


class NotConfigured(FoliotError):  # noqa: N818 - reads aloud
    """The client does not know where Foliot is."""


class ApiError(FoliotError):
    """Foliot refused a call, or could not be reached (status 0)."""

    def __init__(self, status: int, message: str, hint: str = "", errors: list[FieldError] | None = None) -> None:
        super().__init__(message, hint)
        self.status = status
        self.errors = errors or []


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    body: bytes | None = None
    key: str | None = None

    def headers(self, access: Access) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {access.key}", "Accept": "application/json"}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        return headers


def access_or_fail(url: str | None, key: str | None) -> Access:
    found = Access(url.rstrip("/"), key) if url and key else find_access(os.environ)
    if found is None:
        raise NotConfigured(
            "no Foliot was found from here",
            "start one with `foliot up` in this folder, or set FOLIOT_URL and FOLIOT_KEY",
        )
    return found


def unpack(status: int, body: bytes) -> Any:
    """The value of an answer, or ApiError with what the API said."""
    if 200 <= status < 300:
        return msgspec.json.decode(body) if body else None
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError:
        raise ApiError(status, f"answered {status}: {body[:200].decode(errors='replace')}") from None
    raise ApiError(status, problem.detail, problem.hint, problem.errors)


def body_of(values: dict[str, Any]) -> bytes:
    """Keyword arguments in Python's spelling as a JSON object in the wire's; what is None is left out."""
    return msgspec.json.encode(
        {camel(name): value for name, value in values.items() if value is not None}, enc_hook=_encode
    )


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def path(*parts: str, verb: str = "", **query: Any) -> str:
    given = {camel(name): value for name, value in query.items() if value is not None}
    address = "/v1/" + "/".join(quote(part, safe="") for part in parts) + verb
    return f"{address}?{urlencode(given)}" if given else address


def timing(*, delay: str | float | timedelta | None, at: datetime | None) -> dict[str, Any]:
    """When a run shall start, as the wire wants it."""
    return {
        "delay": format_duration(delay) if isinstance(delay, timedelta) else delay,
        "run_at": None if at is None else rfc3339(at),
    }


def _encode(value: Any) -> Any:
    raise NotImplementedError(f"a {type(value).__name__} cannot be sent as JSON")
