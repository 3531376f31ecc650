"""Tenants."""

from typing import NamedTuple

from foliot.store.database import Connection, Database
from foliot.store.statements import SQL


async def create_tenant(connection: Connection, name: str) -> int | None:
    """Its number; none if there is one of that name."""
    return await connection.fetchval(SQL["create_tenant"], name)  # type: ignore[no-any-return]


async def find_tenant(database: Database, name: str) -> int | None:
    return await database.fetchval("find_tenant", name)  # type: ignore[no-any-return]


class TenantRow(NamedTuple):
    """A tenant, and how it stands with its limit; without one nobody is counted."""

    name: str
    id: int
    weight: int
    concurrency: int | None
    version: int
    going: int | None
    waiting: int | None
    rate: float | None
    burst: int | None
    backlog: int | None
    most_jobs: int | None
    most_schedules: int | None
    most_keys: int | None


async def read_tenants(
    database: Database, *, name: str | None = None, number: int | None = None, after: str = "", limit: int = 1
) -> list[TenantRow]:
    """By name: that of a name or of a number, or all after a name."""
    return [TenantRow(*row) for row in await database.fetch("read_tenants", name, number, after, limit)]


async def read_new(connection: Connection, name: str) -> TenantRow:
    """One that was made in this transaction."""
    row = await connection.fetchrow(SQL["read_tenants"], name, None, "", 1)
    assert row is not None  # noqa: S101 - it was made just now
    return TenantRow(*row)


async def hold_version(connection: Connection, name: str) -> int | None:
    """The version of a tenant, which stays until the transaction ends; none if there is no such tenant."""
    return await connection.fetchval(SQL["hold_tenant"], name)  # type: ignore[no-any-return]


async def change_limit(connection: Connection, name: str, limit: int | None) -> int | None:
    """The tenant's number, or none if there is no such tenant."""
    return await connection.fetchval(SQL["change_limit"], name, limit)  # type: ignore[no-any-return]
