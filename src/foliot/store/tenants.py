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


async def read_held(connection: Connection, name: str) -> TenantRow:
    """One that this transaction has made, or holds."""
    row = await connection.fetchrow(SQL["read_tenants"], name, None, "", 1)
    assert row is not None  # noqa: S101 - nobody can have taken it away
    return TenantRow(*row)


async def change_limit(connection: Connection, name: str, limit: int | None) -> None:
    await connection.execute(SQL["change_limit"], name, limit)
