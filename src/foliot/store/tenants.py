"""Tenants and their keys."""

from collections.abc import Sequence
from typing import NamedTuple

from foliot.store.database import Database


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


async def insert_key(
    database: Database, key: str, tenant: int, digest: bytes, label: str, serves: Sequence[str]
) -> None:
    await database.fetch("insert_key", key, tenant, digest, label, list(serves) or None)


async def let_serve(database: Database, key: str, serves: Sequence[str]) -> None:
    await database.fetch("let_serve", key, list(serves))


async def find_key(database: Database, key: str) -> KeyOwner | None:
    row = await database.fetchrow("find_key", key)
    return None if row is None else KeyOwner(*row.values())
