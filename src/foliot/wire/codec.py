"""How values look on the wire: instants in RFC 3339 UTC, durations in ISO 8601; and how a request is known again."""

import hashlib
import hmac
import re
from datetime import UTC, datetime
from typing import Final

CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Characters that steer terminals and devices; none belongs into a name or a header."""

IDEMPOTENCY_KEY: Final = re.compile(r"[\x21-\x7e]{1,200}")


def rfc3339(instant: datetime) -> str:
    """`2026-01-31T09:00:00Z`, with as many fractional digits as are needed (none, 3 or 6)."""
    at = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    precision = "seconds" if not at.microsecond else "microseconds" if at.microsecond % 1000 else "milliseconds"
    return at.isoformat(timespec=precision).replace("+00:00", "Z")


def fingerprint(method: str, path: str, body: bytes, secret: str = "") -> bytes:
    """Equal for the same request: an idempotency key stands for one.

    With a `secret`, nobody who does not know that can find out the body by trying.
    """
    asked = f"{method} {path}\n".encode("utf-8", "surrogateescape") + body
    return hmac.digest(secret.encode(), asked, "sha256") if secret else hashlib.sha256(asked).digest()
