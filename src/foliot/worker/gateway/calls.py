"""Calls to the gateway of an API, and what it means when they fail."""

from typing import Any, Final, TypeVar

import aiohttp
import msgspec
from yarl import URL

from foliot.domain.errors import FoliotError
from foliot.kit.settings import Access
from foliot.store.recovery import Contended, OutOfReach, Refused
from foliot.wire.problems import Problem

PATIENCE: Final = 10.0
"""Seconds for an answer, besides what a claim waits by itself."""
BEAT_PATIENCE: Final = 5.0
"""A third of the lease: one that does not answer leaves time for another try."""
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of a gateway, or of a proxy before it, that may be another one soon."""

_UNFIT: Final = frozenset({400, 413, 422})

_CALLS: Final = ("claim", "heartbeat", "settle", "report", "secrets", "look")

_Answer = TypeVar("_Answer")


def open_gateway_session() -> aiohttp.ClientSession:
    """A session for any number of workers: each uses up to three connections at once."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=10, keepalive_timeout=30),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


class Unknown(Refused):
    """The gateway knows no worker of ours by that id."""


class NotTaken(FoliotError):  # noqa: N818 - reads aloud
    """The gateway knows us, but cannot take what we say."""


class Calls:
    """One key's calls. Any number of workers may share the session."""

    def __init__(self, session: aiohttp.ClientSession, access: Access) -> None:
        self._session = session
        self._url = access.url
        self._paths = {name: URL(f"{access.url}/v1/work/{name}") for name in _CALLS}
        self._headers = {"Authorization": f"Bearer {access.key}", "Content-Type": "application/json"}

    async def post(self, name: str, body: Any, kind: type[_Answer], patience: float = PATIENCE) -> _Answer:
        """What the gateway answers to this call. `OutOfReach` if it may do so later; other errors say what is wrong."""
        try:
            async with self._session.post(
                self._paths[name],
                data=msgspec.json.encode(body),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=patience, sock_connect=BEAT_PATIENCE),
                allow_redirects=False,
            ) as response:
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            what = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            raise OutOfReach(f"{self._url} is out of reach: {what}") from error
        if response.status == 200:
            return self._decode(content, kind)
        raise self._refusal(response.status, content)

    def _decode(self, content: bytes, kind: type[_Answer]) -> _Answer:
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.MsgspecError as error:
            raise Refused(
                f"{self._url} answers what no gateway does: {error}", "is it the address of Foliot?"
            ) from None

    def _refusal(self, status: int, content: bytes) -> Exception:
        try:
            problem = msgspec.json.decode(content, type=Problem)
        except msgspec.MsgspecError:
            said, hint = content[:200].decode(errors="replace"), "is FOLIOT_URL the address of Foliot?"
            problem = Problem(type="", title="", status=status, detail=said, hint=hint)
        if status in _PASSING:
            return OutOfReach(f"{self._url} cannot serve now: {status} {problem.detail}")
        if problem.type == "urn:foliot:problem:not-found":
            return Unknown(problem.detail, "start the worker again: it comes back as a new one")
        if problem.type == "urn:foliot:problem:conflict":
            return Contended(problem.detail, problem.hint)
        if problem.type and status in _UNFIT:
            said = "; ".join(f"{each.field}: {each.message}" for each in problem.errors or ())
            return NotTaken(f"{self._url} cannot take it: {status} {said or problem.detail}", problem.hint)
        return Refused(f"{self._url} refuses us: {status} {problem.detail}", problem.hint)
