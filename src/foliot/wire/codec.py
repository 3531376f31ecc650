"""How values look on the wire: instants in RFC 3339 UTC, durations in ISO 8601."""

from datetime import UTC, datetime


def rfc3339(instant: datetime) -> str:
    """`2026-01-31T09:00:00Z`, with as many fractional digits as are needed (none, 3 or 6)."""
    at = instant.astimezone(UTC)
    precision = "seconds" if not at.microsecond else "microseconds" if at.microsecond % 1000 else "milliseconds"
    return at.isoformat(timespec=precision).replace("+00:00", "Z")
