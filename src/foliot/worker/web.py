"""Runs HTTP handlers: one request per attempt, judged by its status."""

import email.utils
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import aiohttp
import msgspec
from multidict import CIMultiDict

from foliot.domain.egress import Egress
from foliot.domain.errorclass import REFUSED, classes_of, classes_of_status
from foliot.domain.ids import encode
from foliot.domain.outcome import Failure
from foliot.domain.retry import LONGEST_RETRY_AFTER
from foliot.domain.spec import HttpHandler
from foliot.kit import telemetry
from foliot.kit.outbound import GuardedConnector, Refused
from foliot.wire.codec import rfc3339
from foliot.worker.executor import Assignment, Executor

LARGEST_RESPONSE: Final = 64 * 1024
"""Bytes of an answer that are read: enough for an error message, too few to fill a worker's memory."""
_TRANSIENT: Final = frozenset({408, 409, 425, 429})


def open_session(limit: int, *, egress: Egress) -> aiohttp.ClientSession:
    """A session that reuses connections and keeps no cookies: runs of different tenants share nothing but sockets.

    It connects to nothing that `egress` does not allow.
    """
    return aiohttp.ClientSession(
        connector=GuardedConnector(egress.reason, limit=limit, limit_per_host=limit, ttl_dns_cache=10),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        auto_decompress=False,
    )


def http_executor(session: aiohttp.ClientSession) -> Executor:
    async def execute(assignment: Assignment) -> Failure | None:
        handler = assignment.spec.handler
        if not isinstance(handler, HttpHandler):
            raise TypeError("not an HTTP handler")
        target = msgspec.json.decode(assignment.run.target) if assignment.run.target else {}
        url = str(target.get("url") or handler.url)
        # The owner's own come last but cannot hide ours: the wire refuses names that we set, save for User-Agent.
        headers = CIMultiDict(_headers(assignment))
        headers.update({**handler.headers, **target.get("headers", {})})
        try:
            async with session.request(
                handler.method, url, data=_body(assignment), headers=headers, allow_redirects=False
            ) as response:
                return _verdict(response.status, response.headers, await _read(response.content))
        except Refused as error:
            telemetry.TARGETS_REFUSED.inc()
            return Failure(str(error), permanent=True, classes=(REFUSED,))
        except (aiohttp.ClientError, OSError) as error:
            # Whatever the library calls it, to a rule it is what its name says: no connection.
            classes = ("ConnectionError", *classes_of(type(error)))
            return Failure(f"{url} could not be called: {type(error).__name__} {error}", classes=classes)

    return execute


async def _read(content: aiohttp.StreamReader) -> bytes:
    """The answer, up to the cap. What is read to its end leaves its connection fit for the next call."""
    parts, room = [], LARGEST_RESPONSE
    while room and (part := await content.read(room)):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def _headers(assignment: Assignment) -> dict[str, str]:
    run = assignment.run
    name = encode("run", run.id)
    return {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",  # the answer is not decompressed, and its text may end up in an error
        "User-Agent": "Foliot",
        "Idempotency-Key": name,
        "Foliot-Run": name,
        "Foliot-Attempt": str(run.attempt + 1),
        "Foliot-Fence": str(run.fence),
        "Foliot-Scheduled-At": rfc3339(run.scheduled_at),
        "traceparent": f"00-{run.id:032x}-{run.fence:016x}-01",
    }


def _body(assignment: Assignment) -> bytes:
    run = assignment.run
    return msgspec.json.encode(
        {
            "runId": encode("run", run.id),
            "jobId": None if run.job is None else encode("job", run.job),
            "name": assignment.name,
            "scheduledAt": rfc3339(run.scheduled_at),
            "attempt": run.attempt + 1,
            "payload": msgspec.Raw(run.payload),
        }
    )


def _verdict(status: int, headers: Mapping[str, str], text: bytes) -> Failure | None:
    """2xx is success; 4xx except 408, 409, 425, 429 cannot be mended by trying again, unless a rule says so."""
    if 200 <= status < 300:
        return None
    error = f"answered {status}: {text[:1_000].decode(errors='replace')}".rstrip(": ")
    permanent = 400 <= status < 500 and status not in _TRANSIENT
    return Failure(error, permanent=permanent, retry_after=_retry_after(headers), classes=classes_of_status(status))


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
