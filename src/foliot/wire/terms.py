"""Rate limits and quotas on the wire."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.domain.bucket import FASTEST, LARGEST_BURST, RateLimit, rate_limit
from foliot.domain.terms import MOST_BACKLOG, MOST_OWNED, Quota, Terms, check_backlog, check_owned

# As in wire/limits.py: people are told of bounds by the domain.
PerSecond = Annotated[float, Meta(extra_json_schema={"exclusiveMinimum": 0, "maximum": FASTEST})]
Burst = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": LARGEST_BURST})]
MostWaiting = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MOST_BACKLOG})]
MostOwned = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": MOST_OWNED})]


class RateLimitBody(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Calls a second, each run and each job that a call hands in counted; `burst` of them at once after a silence.

    Without a burst it is what one second brings. What workers ask for as such is not counted.
    """

    per_second: PerSecond
    burst: Burst | None = None


class QuotasPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Quotas to change; null takes one away."""

    jobs: MostOwned | UnsetType | None = UNSET
    schedules: MostOwned | UnsetType | None = UNSET
    keys: MostOwned | UnsetType | None = UNSET


class QuotasView(msgspec.Struct, frozen=True):
    """How many the tenant may have: jobs (on demand or recurring), of these with a schedule, and active keys."""

    jobs: int | None
    schedules: int | None
    keys: int | None


class UsedView(msgspec.Struct, frozen=True):
    """What the tenant has of that, counted to one more than its quota; null without one.

    `backlog` is how many of its runs are due and have not ended, about, a second ago.
    """

    jobs: int | None
    schedules: int | None
    keys: int | None
    backlog: int | None = None


def limit_of(body: RateLimitBody | None, field: str = "rateLimit") -> RateLimit | None:
    return None if body is None else rate_limit(body.per_second, body.burst, field)


def limit_body(limit: RateLimit | None) -> RateLimitBody | None:
    return None if limit is None else RateLimitBody(*limit)


def changed_terms(
    terms: Terms,
    rate: RateLimitBody | UnsetType | None,
    backlog: int | UnsetType | None,
    quotas: QuotasPatch | UnsetType,
) -> Terms:
    """The terms with what was given in the place of what was; InvalidField for what cannot be."""
    if rate is not UNSET:
        terms = terms._replace(rate=limit_of(rate, "limits.rateLimit"))
    if backlog is not UNSET:
        terms = terms._replace(backlog=None if backlog is None else check_backlog(backlog))
    if quotas is UNSET:
        return terms
    given = {name: value for name in Quota._fields if (value := getattr(quotas, name)) is not UNSET}
    checked = {name: None if value is None else check_owned(name, value) for name, value in given.items()}
    return terms._replace(quota=terms.quota._replace(**checked))
