"""What a tenant may: how fast it calls, how much of its work may wait, and how much it may own."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from foliot.domain.bucket import RateLimit
from foliot.domain.errors import InvalidField, QuotaExceeded

MOST_BACKLOG: Final = 1_000_000_000_000
MOST_OWNED: Final = 2_000_000_000
ASKED_AGAIN: Final = 60.0
"""Seconds after which it may be worth asking for more than a quota allowed: somebody may have made room by then."""


class Quota(NamedTuple):
    """How many of what a tenant may have; none is as many as it likes."""

    jobs: int | None = None
    """On demand or recurring, not cancelled. One-time jobs come to their end by themselves, and are not counted."""
    schedules: int | None = None
    """Of these, the recurring ones."""
    keys: int | None = None
    """Neither revoked nor expired."""


class Terms(NamedTuple):
    """All that is set for one tenant; what is none is as the deployment has it."""

    rate: RateLimit | None = None
    backlog: int | None = None
    """Runs that are due and have not ended, above which no more are taken in."""
    quota: Quota = Quota()


NO_TERMS: Final = Terms()


def facts(terms: Terms) -> dict[str, Any]:
    """As the audit trail tells it."""
    return {"rateLimit": rate_facts(terms.rate), "backlog": terms.backlog, **terms.quota._asdict()}


def rate_facts(limit: RateLimit | None) -> dict[str, Any] | None:
    return None if limit is None else {"perSecond": limit.per_second, "burst": limit.burst}


_DOOR: Final = "an operator raises it"


def check_backlog(backlog: int) -> int:
    if not 1 <= backlog <= MOST_BACKLOG:
        hint = f"from 1 to {MOST_BACKLOG:,}; null takes the limit away"
        raise InvalidField("limits.backlog", f"a backlog of {backlog} cannot be", hint)
    return backlog


def check_owned(what: str, most: int) -> int:
    if not 0 <= most <= MOST_OWNED:
        hint = f"from 0 to {MOST_OWNED:,}; null takes the quota away"
        raise InvalidField(f"quotas.{what}", f"{most} cannot be", hint)
    return most


def check_quota(tenant: str, quota: Quota, used: Mapping[str, int | None], adding: Mapping[str, int]) -> None:
    """QuotaExceeded if the tenant would have more than it may; `used` tells what it has without `adding`."""
    for what, count in adding.items():
        most, has = getattr(quota, what), used[what] or 0
        if count and most is not None and has + count > most:
            more = f", and {count:,} more were asked for" if count > 1 else ""
            raise QuotaExceeded(
                f"tenant {tenant} may have {most:,} {what} and has {'more' if has > most else f'{has:,}'}{more}",
                f"waiting alone does not help: {_WAYS[what]}, or {_DOOR}:"
                f" `foliot tenant quota {tenant} --{what} {_rounded(has + count)}`",
                after=ASKED_AGAIN,
            )


_WAYS: Final = {
    "jobs": "cancel jobs that are not needed",
    "schedules": "cancel recurring jobs that are not needed",
    "keys": "revoke keys that are not needed",
}


def _rounded(number: int) -> int:
    """The next number that people would choose."""
    size: int = 10 ** (len(str(number)) - 1)
    return -(-number // size) * size
