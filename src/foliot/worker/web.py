"""Runs HTTP handlers: one signed request per attempt, judged by its answer."""

import asyncio
import email.utils
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from foliot.domain.discretion import hushed, secrets_in
from foliot.domain.egress import Egress
from foliot.domain.errorclass import REFUSED, classes_of, classes_of_status
from foliot.domain.ids import encode
from foliot.domain.outcome import Answer, Entrusted, Failure, Returned
from foliot.domain.redaction import Redaction
from foliot.domain.result import is_small_json
from foliot.domain.retry import LONGEST_RETRY_AFTER
from foliot.domain.seal import Mac, Voucher, signature
from foliot.domain.secret import SecretRef, Text
from foliot.domain.spec import HttpHandler
from foliot.kit import telemetry
from foliot.kit.calling import Caller, Reply
from foliot.kit.outbound import GuardedConnector, Refused
from foliot.store.dispatch import Claimed
from foliot.wire.codec import rfc3339
from foliot.worker.executor import Assignment, Executor

LARGEST_RESPONSE: Final = 64 * 1024
"""Bytes of an answer that are read: enough for an error message, too few to fill a worker's memory."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10)
"""Only of connecting: the time of an attempt is the runner's business."""
_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_ALWAYS: Final = (
    ("Content-Type", "application/json"),
    ("Accept", "*/*"),
    ("Accept-Encoding", "identity"),  # the answer is not decompressed, and its text may end up in an error
    ("User-Agent", "Foliot"),
)


def open_session(limit: int, per_host: int = 0, *, egress: Egress) -> aiohttp.ClientSession:
    """A session that reuses connections and keeps no cookies: runs of different tenants share nothing but sockets.

    At most `limit` calls at once, and `per_host` (0: as many) of the same host and port: the others wait their turn.
    It connects to nothing that `egress` does not allow.
    """
    return aiohttp.ClientSession(
        connector=GuardedConnector(egress.reason, limit=limit, limit_per_host=per_host or limit, ttl_dns_cache=10),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )


def http_executor(
    session: aiohttp.ClientSession, signing: bytes = b"", voucher: Callable[[], Voucher | None] = lambda: None
) -> Executor:
    """Calls are signed with `signing`, and carry a token of the voucher with which their attempt can be ended later."""
    mac, caller = Mac(signing) if signing else None, Caller(session, LARGEST_RESPONSE, _TIMEOUT)

    async def execute(assignment: Assignment) -> Answer:
        began = asyncio.get_running_loop().time()
        try:
            call = _call_of(assignment, mac, voucher())
        except ValueError as error:  # what the API let through, and the library does not
            return Failure(f"the address cannot be called: {error}", permanent=True, classes=(REFUSED,))
        try:
            reply = await caller(*call)
        except Refused as error:
            telemetry.TARGETS_REFUSED.inc()
            return Failure(str(error), permanent=True, classes=(REFUSED,))
        except (aiohttp.ClientError, OSError) as error:
            # Whatever the library calls it, to a rule it is what its name says: no connection.
            classes = ("ConnectionError", *classes_of(type(error)))
            return Failure(f"{call.url} could not be called: {type(error).__name__} {error}", classes=classes)
        if reply.status == 202 and is_taken_over(reply) and "Foliot-Token" in call.headers:
            spent = timedelta(seconds=asyncio.get_running_loop().time() - began)
            return Entrusted(max(assignment.spec.timeout - spent, timedelta()))
        return _verdict(reply, call)

    return execute


def is_taken_over(reply: Reply) -> bool:
    """Whether an answer of 202 says that the attempt goes on over there, and ends by a later call."""
    return reply.headers.get("Foliot-Complete", "").strip().lower() == "later"


class _Target(msgspec.Struct):
    """What of an address travels with a run."""

    url: str
    headers: dict[str, Text] = {}


_TARGET: Final = msgspec.json.Decoder(_Target)


class _Call(NamedTuple):
    method: str
    url: URL
    headers: CIMultiDict[str]
    body: bytes

    @property
    def redaction(self) -> Redaction:
        """Knows what a target that quotes its call must not make us keep."""
        return Redaction(secrets_in(self.headers))


def _call_of(assignment: Assignment, mac: Mac | None, voucher: Voucher | None) -> _Call:
    run, handler = assignment.run, assignment.handler
    if not isinstance(handler, HttpHandler):
        raise TypeError("not an HTTP handler")
    name, at = encode("run", run.id), rfc3339(run.scheduled_at)
    headers, body = _headers(run, name, at), _body(assignment, name, at)
    if mac is not None:
        signed_at = str(int(assignment.started_at.timestamp()))
        headers.extend((("webhook-id", name), ("webhook-timestamp", signed_at)))
        headers["webhook-signature"] = signature(mac, name, signed_at, body)
    if voucher is not None:
        headers["Foliot-Token"] = voucher.token(run.id, run.tenant, run.fence)
    # The owner's own come last but cannot hide ours: the wire refuses names that we set, save for User-Agent.
    headers.update(_values(handler.headers))
    if assignment.target is None:
        return _Call(handler.method, _parsed(str(handler.url)), headers, body)
    target = _TARGET.decode(assignment.target)
    headers.update(_values(target.headers))
    return _Call(handler.method, _parsed(target.url), headers, body)


def _values(headers: Mapping[str, Text]) -> Mapping[str, str]:
    """As they are sent: secrets have been put in their places by now."""
    if any(isinstance(value, SecretRef) for value in headers.values()):
        raise ValueError("one of its headers is a secret that nobody has put in its place")
    return cast("Mapping[str, str]", headers)


def _headers(run: Claimed, name: str, at: str) -> CIMultiDict[str]:
    return CIMultiDict(
        (
            *_ALWAYS,
            ("Idempotency-Key", name),
            ("Foliot-Run", name),
            ("Foliot-Attempt", str(run.attempt + 1)),
            ("Foliot-Fence", str(run.fence)),
            ("Foliot-Scheduled-At", at),
            ("traceparent", f"00-{run.id:032x}-{run.fence:016x}-01"),
        )
    )


def _body(assignment: Assignment, name: str, at: str) -> bytes:
    """Put together by hand, in a quarter of the time: only the name of a job can be anything."""
    run = assignment.run
    return b'{"runId":"%b","jobId":%b,"name":%b,"scheduledAt":"%b","attempt":%d,"payload":%b}' % (
        name.encode(),
        b"null" if run.job is None else f'"{encode("job", run.job)}"'.encode(),
        msgspec.json.encode(assignment.name),
        at.encode(),
        run.attempt + 1,
        assignment.payload,
    )


@lru_cache(4_096)
def _parsed(url: str) -> URL:
    return URL(url)


def _verdict(reply: Reply, call: _Call) -> Answer:
    """2xx is success; 4xx except 408, 409, 425, 429 cannot be mended by trying again, unless a rule says so."""
    status = reply.status
    if 200 <= status < 300:
        return _returned(reply, call) if reply.text else None
    # Cut afterwards: half a secret is not known as one.
    said = call.redaction.hide(reply.text.decode(errors="replace"))[:1_000]
    error = f"answered {status}: {said}".rstrip(": ")
    permanent = 400 <= status < 500 and status not in _TRANSIENT
    after, classes = _retry_after(reply.headers), classes_of_status(status)
    return Failure(error, permanent=permanent, retry_after=after, classes=classes)


def _returned(reply: Reply, call: _Call) -> Answer:
    """A small answer in JSON is the result, without the secrets of the call."""
    kind, text = reply.headers.get("Content-Type", "").partition(";")[0].strip().lower(), reply.text
    if not (kind == "application/json" or kind.endswith("+json")) or text == b"null" or not is_small_json(text):
        return None
    return hushed(Returned(text), call.redaction)


def _retry_after(headers: Mapping[str, Any]) -> timedelta | None:
    value = str(headers.get("Retry-After", "")).strip()
    if value.isascii() and value.isdigit():
        seconds = int(value) if len(value) < 10 else LONGEST_RETRY_AFTER.total_seconds()
        return min(timedelta(seconds=seconds), LONGEST_RETRY_AFTER)
    try:
        at = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    # A date without a zone is in UTC: HTTP knows no other.
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max(timedelta(), at - datetime.now(UTC)), LONGEST_RETRY_AFTER)
