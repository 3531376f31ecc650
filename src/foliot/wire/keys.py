"""Keys and new tenants on the wire. Only the answer that makes a key has it in plain text."""

from datetime import timedelta
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from foliot.domain.access import NewKey, Role, Scope, check_serves, parse_role, parse_scopes
from foliot.domain.duration import parse_duration
from foliot.domain.errors import InvalidField
from foliot.wire.codec import CONTROL
from foliot.wire.limits import TenantView
from foliot.wire.terms import RateLimitBody, limit_of
from foliot.wire.timing import Duration, Instant

LONGEST_NAME: Final = 100
LONGEST_LIFE: Final = timedelta(days=3_650)
LONGEST_OVERLAP: Final = timedelta(days=90)
MOST_SERVED: Final = 100
RoleWord = Annotated[str, Meta(extra_json_schema={"enum": [*Role]})]
ScopeWord = Annotated[str, Meta(extra_json_schema={"enum": [each for each in Scope if each is not Scope.WORK]})]


class KeyBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A key to be made: a role, and of what it may only these `scopes` if they are given.

    With `serves`, workers fetch the work of these queues with it (`*` for all). Only operators give that, or name
    another `tenant` than their own.
    """

    name: str
    role: RoleWord = Role.EDITOR
    scopes: list[ScopeWord] | None = None
    serves: list[str] = []
    expires_in: Duration | None = None
    rate_limit: RateLimitBody | None = None
    tenant: str | None = None


class KeyLimit(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How fast a key may call; null for as fast as its tenant."""

    rate_limit: RateLimitBody | None


class RotateBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How long the former key goes on, and when the new one expires: by default after as long as the former one had."""

    overlap: Duration = "P1D"
    expires_in: Duration | None = None


class KeyView(msgspec.Struct, kw_only=True, rename="camel"):
    """A key, without what it opens doors with. The id stands in the key itself: `fol_<id>_…`."""

    key_id: str
    tenant: str
    name: str
    role: str
    scopes: list[str]
    """All that it may do."""
    serves: list[str]
    status: str
    """`active`, `expired` or `revoked`."""
    created_at: Instant
    expires_at: Instant | None
    last_used_at: Instant | None
    """To the minute."""
    revoked_at: Instant | None
    rate_limit: RateLimitBody | None = None
    """How fast it may call; null for as fast as its tenant."""


class CreatedKey(KeyView, kw_only=True, rename="camel"):
    """A new key, in plain text this once."""

    key: str


class RotatedKey(msgspec.Struct, kw_only=True, rename="camel"):
    """The new key, in plain text this once, and the one that it takes over from."""

    key: CreatedKey
    former: KeyView


class TenantBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A tenant to be made, and what its first key may do."""

    name: str
    role: RoleWord = Role.ADMIN
    serves: list[str] = []


class CreatedTenant(msgspec.Struct, kw_only=True, rename="camel"):
    """A new tenant and its first key, in plain text this once."""

    tenant: TenantView
    key: CreatedKey


def new_key(body: KeyBody) -> NewKey:
    """What a body asks for; InvalidField if it makes no sense."""
    role = parse_role(body.role)
    scopes = None if body.scopes is None else parse_scopes(role, body.scopes)
    check_serves(body.serves)
    if len(body.serves) > MOST_SERVED:
        raise InvalidField("serves", f"more than {MOST_SERVED} queues", "use fewer, or * for all of them")
    if role is Role.WORKER and not body.serves:
        raise InvalidField("serves", "a worker's key serves at least one queue", "name a queue, or * for all of them")
    return NewKey(
        check_key_name(body.name), role, scopes, body.serves, life_of(body.expires_in), limit_of(body.rate_limit)
    )


def check_key_name(name: str) -> str:
    if not 1 <= len(name) <= LONGEST_NAME or CONTROL.search(name) or not name.isprintable():
        hint = f"what the key is for, in 1 to {LONGEST_NAME} characters"
        raise InvalidField("name", "cannot be a key's name", hint)
    return name


def life_of(duration: Duration | None) -> timedelta | None:
    if duration is None:
        return None
    life = parse_duration(duration, "expiresIn")
    if not timedelta(0) < life <= LONGEST_LIFE:
        raise InvalidField("expiresIn", f"is not between 0 and {LONGEST_LIFE.days:,} days", "P90D is a good habit")
    return life


def overlap_of(duration: Duration) -> timedelta:
    overlap = parse_duration(duration, "overlap")
    if overlap > LONGEST_OVERLAP:
        raise InvalidField("overlap", f"is longer than {LONGEST_OVERLAP.days} days", "PT0S ends the former key at once")
    return overlap
