"""Limits on the wire: how many runs go at once, of a job, of a key or of a tenant, and what overlapping ones do."""

from types import MappingProxyType
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.domain.errors import InvalidField
from foliot.domain.job import Overlap
from foliot.domain.limits import HIGHEST, Concurrency, check_limit
from foliot.wire.terms import MostWaiting, QuotasPatch, QuotasView, RateLimitBody, UsedView

# Bounds and words are told to people by the domain, in its own words; the document says them in its own way.
Limit = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": HIGHEST})]
OverlapWord = Annotated[str, Meta(extra_json_schema={"enum": [each.value for each in Overlap]})]
LINES: Final = MappingProxyType({1: "overlap", 2: "concurrency", 3: "tenant"})
COUNTED: Final = 10_000
"""Of those before a run in its line, so many are counted."""
_WORDS: Final = ", ".join(each.value for each in Overlap)


class ConcurrencyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """At most `limit` runs at once; with a `key`, a path such as `payload.account`, so many of each value there."""

    limit: Limit
    key: str | None = None


class LimitsPatch(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Limits to change; null takes one away."""

    concurrency: Limit | UnsetType | None = UNSET
    rate_limit: RateLimitBody | UnsetType | None = UNSET
    backlog: MostWaiting | UnsetType | None = UNSET


class TenantPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to change about a tenant."""

    weight: int | UnsetType = UNSET
    limits: LimitsPatch | UnsetType = UNSET
    quotas: QuotasPatch | UnsetType = UNSET


class LimitsView(msgspec.Struct, frozen=True, rename="camel"):
    """How many runs of the tenant go at once, over all its jobs; null for as many as there are workers for.

    How fast it may call, and how many of its runs may wait before no more are taken; null for what is usual here.
    """

    concurrency: int | None
    rate_limit: RateLimitBody | None = None
    backlog: int | None = None


class TenantView(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant: its share against the others, its limits, and who is held up by them."""

    tenant: str
    weight: int
    limits: LimitsView
    going: int | None
    """Runs that count against the limit now; null without one."""
    waiting: int | None
    """Runs that are due and wait for it."""
    quotas: QuotasView
    version: int
    """Rises with each change of what is said above, but for who goes and waits."""
    used: UsedView | UnsetType = UNSET
    """Of its quotas and its backlog; not told in lists."""


class BlockedBy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run waits for: the `overlap` or `concurrency` of its job, or the `tenant`'s limit.

    `going` runs count against `limit` now, and `ahead` of this run (10,000 stands for more) others wait. A list leaves
    these two out.
    """

    line: str
    limit: int
    going: int | None = None
    ahead: int | None = None


def turn_of(blocked: BlockedBy, path: str | None, *, has_job: bool) -> str:
    """What a run that stands in a line waits for, in a sentence."""
    whose = {"overlap": "of its job's schedule", "tenant": "of its tenant"}.get(blocked.line)
    if whose is None:
        whose = "of its job" if has_job else "of its queue and handler"
        whose += f" with its {path}" if path else ""
    said = f"its turn: at most {blocked.limit:,} {'run' if blocked.limit == 1 else 'runs'} {whose} at once"
    match blocked.ahead:
        case None:
            return said
        case 0:
            return f"{said}; it is the next"
        case ahead:
            more = " or more" if ahead >= COUNTED else ""
            return f"{said}; {ahead:,}{more} before it"


def concurrency_of(body: ConcurrencyBody) -> Concurrency:
    return Concurrency(body.limit, body.key)


def concurrency_body(concurrency: Concurrency) -> ConcurrencyBody:
    return ConcurrencyBody(concurrency.limit, concurrency.key)


def overlap_of(word: str, *, is_recurring: bool) -> Overlap:
    """Runs by hand and one-time runs neither wait for each other nor are waited for."""
    try:
        overlap = Overlap(word)
    except ValueError:
        raise InvalidField("overlap", f"there is no {word[:40]!r}", f"one of {_WORDS}") from None
    if overlap.number and not is_recurring:
        hint = 'add a schedule; so that runs by hand wait for each other, use "concurrency": {"limit": 1}'
        raise InvalidField("overlap", f"{word}: only fire times of a schedule can overlap", hint)
    return overlap


def tenant_limit(limit: int | None) -> int | None:
    return None if limit is None else check_limit(limit, "limits.concurrency", "to stop a tenant, pause its jobs")
