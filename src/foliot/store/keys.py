"""Keys of tenants: what each may do, until when, and whose it is."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from foliot.domain.access import NewKey, Role, Scope, scopes_of
from foliot.domain.bucket import RateLimit
from foliot.kit.tokens import Token
from foliot.store.database import Connection, Database, Row
from foliot.store.statements import SQL

TRIES: Final = 3


class KeyRow(NamedTuple):
    id: str
    tenant: int
    tenant_name: str
    label: str
    role: Role
    narrowed: Sequence[str] | None
    """What its role may do, but no more than this."""
    serves: Sequence[str]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    now: datetime
    """By the database's clock, when it was read."""
    rate: float | None = None
    burst: int | None = None

    @property
    def rate_limit(self) -> RateLimit | None:
        """How fast it may call; none is as fast as its tenant."""
        return None if self.rate is None or self.burst is None else RateLimit(self.rate, self.burst)

    @property
    def scopes(self) -> frozenset[Scope]:
        return scopes_of(self.role, self.narrowed, self.serves)

    @property
    def status(self) -> str:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= self.now else "active"


class KeyOwner(NamedTuple):
    digest: bytes
    tenant: int
    name: str
    key: str
    serves: Sequence[str]
    """The queues whose work may be fetched with it; `*` is every queue."""
    role: Role = Role.WORKER
    scopes: frozenset[Scope] = frozenset()
    remaining: float | None = None
    """Seconds until it expires."""
    rate: RateLimit | None = None
    """How fast its tenant may call, with all its keys."""
    key_rate: RateLimit | None = None
    """How fast this key may call."""
    backlog: int | None = None
    """How many of its tenant's runs may wait."""


async def make_key(connection: Connection, tenant: int, token: Token, new: NewKey) -> KeyRow | None:
    """None if two of that name are active already."""
    await connection.execute(SQL["free_places"], tenant, new.name)
    scopes = None if new.scopes is None else [*new.scopes]
    serves, rate = [*new.serves] or None, new.rate or (None, None)
    values = (token.id, tenant, token.digest, new.name, new.role, scopes, serves, new.life, *rate)
    for _ in range(TRIES):  # rivals for a place: each that loses sees it taken the next time
        if rows := await connection.fetch(SQL["insert_key"], *values):
            return _key(rows[0])
    return None


async def list_keys(
    database: Database,
    *,
    tenant: int | None,
    label: str | None = None,
    status: str | None = None,
    before: tuple[datetime, str] | None = None,
    limit: int,
) -> list[KeyRow]:
    rows = await database.fetch("list_keys", tenant, label, status, *(before or (None, None)), limit)
    return [_key(row) for row in rows]


async def read_key(database: Database, key: str) -> KeyRow | None:
    row = await database.fetchrow("read_key", key)
    return None if row is None else _key(row)


async def revoke_key(connection: Connection, tenant: int, key: str) -> bool:
    """Whether it was not revoked yet."""
    return bool(await connection.fetch(SQL["revoke_key"], tenant, key))


def facts(row: KeyRow) -> dict[str, Any]:
    """A key for the audit trail."""
    return {
        "name": row.label,
        "role": row.role,
        "scopes": sorted(row.scopes),
        "serves": [*row.serves],
        "expiresAt": row.expires_at,
        "rateLimit": row.rate_limit and row.rate_limit._asdict(),
    }


async def revoke_named(connection: Connection, tenant: int, label: str) -> list[str]:
    """All keys of that name; which those are."""
    return [row["id"] for row in await connection.fetch(SQL["revoke_named"], tenant, label)]


async def expire_key(connection: Connection, tenant: int, key: str, within: timedelta) -> KeyRow:
    """The key as it is then."""
    await connection.execute(SQL["expire_key"], tenant, key, within)
    return _key(await connection.fetchrow(SQL["read_key"], key))


async def entrust(connection: Connection, tenant: int, key: str, role: Role, serves: Sequence[str]) -> bool:
    """Let a key do all that the role may, and serve these queues; whether that is new."""
    return bool(await connection.fetch(SQL["entrust_key"], tenant, key, role, [*serves]))


async def note_used(database: Database, ago: Mapping[str, float]) -> None:
    """Write down how many seconds ago these keys were used."""
    await database.fetch("note_used", [*ago], [*ago.values()])


async def find_key(database: Database, key: str) -> KeyOwner | None:
    """Of a key that is neither revoked nor expired."""
    row = await database.fetchrow("find_key", key)
    if row is None:
        return None
    digest, tenant, name, key, serves, role, narrowed, remaining, *rates, backlog = row.values()
    scopes = scopes_of(Role(role), narrowed, serves)
    own, its = (None if rate is None else RateLimit(rate, burst) for rate, burst in (rates[:2], rates[2:]))
    return KeyOwner(digest, tenant, name, key, serves, Role(role), scopes, remaining, own, its, backlog)


def _key(row: Row) -> KeyRow:
    key = KeyRow(*row.values())
    return key._replace(role=Role(key.role))
