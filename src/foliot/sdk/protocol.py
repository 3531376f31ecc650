"""How requests and answers look, whichever client carries them."""

import os
import platform
import re
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from foliot import __version__
from foliot.domain.errors import InvalidField
from foliot.kit.settings import Access, find_access
from foliot.sdk.errors import NotConfigured, error_of, strange
from foliot.wire.codec import IDEMPOTENCY_KEY
from foliot.wire.problems import Problem

_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
USER_AGENT: Final = f"foliot/{__version__} Python/{platform.python_version()}"


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    body: bytes | None = None
    key: str | None = None
    """The idempotency key: the same for every time that it is sent."""
    version: int | None = None
    """Of what is to be changed: refused (412) if it is at another one."""

    @property
    def is_change(self) -> bool:
        return self.method != "GET"

    @property
    def once(self) -> bool:
        """Whether sending it twice would tell another story: what was changed is at another version afterwards."""
        return self.version is not None

    def headers(self, access: Access) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {access.key}", "Accept": "application/json", "User-Agent": USER_AGENT}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.key is not None:
            headers["Idempotency-Key"] = check_key(self.key)
        if self.version is not None:
            headers["If-Match"] = f'"{self.version:d}"'
        return headers


class Answer(NamedTuple):
    status: int
    body: bytes
    retry_after: float | None = None
    """Seconds."""


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


def seconds_of(retry_after: str | None) -> float | None:
    """What a Retry-After header says. A date is left to our own patience: clocks differ."""
    text = (retry_after or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def unpack(answer: Answer) -> Any:
    """The value of an answer, or an ApiError with what the API said."""
    status, body, retry_after = answer
    if 200 <= status < 300:
        try:
            return msgspec.json.decode(body) if body else None
        except msgspec.DecodeError:
            raise strange(status, body) from None
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError:
        raise strange(status, body, retry_after) from None
    raise error_of(status, problem, retry_after)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def path(*parts: str, verb: str = "", **query: Any) -> str:
    given = {camel(name): value for name, value in query.items() if value is not None}
    address = "/v1/" + "/".join(quote(part, safe="") for part in parts) + verb
    return f"{address}?{urlencode(given)}" if given else address
