"""How requests and answers look, whichever client carries them."""

import os
import re
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from foliot.domain.errors import FoliotError, InvalidField
from foliot.kit.settings import Access, find_access
from foliot.wire.codec import IDEMPOTENCY_KEY
from foliot.wire.views import FieldError, Problem

_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")


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
    version: int | None = None
    """Of what is to be changed: refused (412) if it is at another one."""

    def headers(self, access: Access) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {access.key}", "Accept": "application/json"}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.key is not None:
            headers["Idempotency-Key"] = check_key(self.key)
        if self.version is not None:
            headers["If-Match"] = f'"{self.version:d}"'
        return headers


def check_key(key: str) -> str:
    """What may stand for one request."""
    if not IDEMPOTENCY_KEY.fullmatch(key):
        raise InvalidField("idempotency_key", "is not 1 to 200 characters of visible ASCII", "a random UUID does well")
    return key


def access_or_fail(url: str | None, key: str | None) -> Access:
    """Where Foliot is and who calls: what is given, else the environment, else what `foliot up` left here."""
    given = {name: text.strip() for name, text in (("FOLIOT_URL", url), ("FOLIOT_KEY", key)) if text}
    found = find_access({**os.environ, **given})
    if found is None:
        raise NotConfigured(
            "no Foliot was found from here",
            "start one with `foliot up` in this folder, or set FOLIOT_URL and FOLIOT_KEY",
        )
    parts = urlsplit(found.url.strip())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise NotConfigured(f"{found.url!r} is not an http(s) address", "correct FOLIOT_URL")
    if not _VISIBLE.fullmatch(found.key.strip()):
        raise NotConfigured("the key contains what no key has", "correct FOLIOT_KEY")
    return Access(found.url.strip(), found.key.strip())


def unreachable(access: Access, error: Any) -> ApiError:
    error = getattr(error, "reason", None) or getattr(error, "os_error", None) or error  # what the libraries wrap
    timed_out = "no answer in time" if isinstance(error, TimeoutError) else ""
    reason = timed_out or getattr(error, "strerror", None) or str(error) or type(error).__name__
    return ApiError(0, f"{access.url} cannot be reached: {reason}", "is `foliot up` running?")


def unpack(status: int, body: bytes) -> Any:
    """The value of an answer, or ApiError with what the API said."""
    if 200 <= status < 300:
        try:
            return msgspec.json.decode(body) if body else None
        except msgspec.DecodeError:
            hint = "is FOLIOT_URL the address of Foliot?"
            raise ApiError(status, f"answered what is not JSON: {body[:200].decode(errors='replace')}", hint) from None
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError:
        raise ApiError(status, f"answered {status}: {body[:200].decode(errors='replace')}") from None
    raise ApiError(status, problem.detail, problem.hint, problem.errors)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def path(*parts: str, verb: str = "", **query: Any) -> str:
    given = {camel(name): value for name, value in query.items() if value is not None}
    address = "/v1/" + "/".join(quote(part, safe="") for part in parts) + verb
    return f"{address}?{urlencode(given)}" if given else address
