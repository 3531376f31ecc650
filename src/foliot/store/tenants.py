"""Tenants and their keys."""

from collections.abc import Sequence
from typing import NamedTuple

from foliot.store.database import Connection, Database
from foliot.store.statements import SQL


class KeyOwner(NamedTuple):
    digest: bytes
    tenant: int
    name: str
    key: str
    serves: Sequence[str]
    """The queues whose work may be fetched with it; `*` is every queue."""


async def create_tenant(database: Database, name: str) -> bool:
    """False if there is one of that name."""
    return bool(await database.fetch("create_tenant", name))


async def find_tenant(database: Database, name: str) -> int | None:
    return await database.fetchval("find_tenant", name)  # type: ignore[no-any-return]


class TenantRow(NamedTuple):
    """A tenant, and how it stands with its limit; without one nobody is counted."""

    id: int
    weight: int
    concurrency: int | None
    going: int | None
    waiting: int | None


async def read_tenant(database: Database, name: str) -> TenantRow | None:
    row = await database.fetchrow("read_tenant", name)
    return None if row is None else TenantRow(*row)


async def change_limit(connection: Connection, name: str, limit: int | None) -> int | None:
    """The tenant's number, or none if there is no such tenant."""
    return await connection.fetchval(SQL["change_limit"], name, limit)  # type: ignore[no-any-return]


async def insert_key(
    database: Database, key: str, tenant: int, digest: bytes, label: str, serves: Sequence[str]
) -> None:
    await database.fetch("insert_key", key, tenant, digest, label, list(serves) or None)


async def let_serve(database: Database, key: str, serves: Sequence[str]) -> None:
    await database.fetch("let_serve", key, list(serves))


async def find_key(database: Database, key: str) -> KeyOwner | None:
    row = await database.fetchrow("find_key", key)
    return None if row is None else KeyOwner(*row.values())
