"""Tenants and their keys."""

from typing import NamedTuple

from foliot.store.database import Database


class KeyOwner(NamedTuple):
    digest: bytes
    tenant: int
    name: str


async def create_tenant(database: Database, name: str) -> bool:
    """False if there is one of that name."""
    return bool(await database.fetch("create_tenant", name))


async def find_tenant(database: Database, name: str) -> int | None:
    return await database.fetchval("find_tenant", name)  # type: ignore[no-any-return]


async def insert_key(database: Database, key: str, tenant: int, digest: bytes, label: str) -> None:
    await database.fetch("insert_key", key, tenant, digest, label)


async def find_key(database: Database, key: str) -> KeyOwner | None:
    row = await database.fetchrow("find_key", key)
    return None if row is None else KeyOwner(*row.values())
