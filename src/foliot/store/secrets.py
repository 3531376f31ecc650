"""Secrets, sealed: what is stored of them, and what a worker may know."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from foliot.store.database import Connection, Database, Line
from foliot.store.statements import SQL


class SecretRow(NamedTuple):
    name: str
    version: int
    updated_at: datetime


async def put_secret(connection: Connection, tenant: int, name: str, sealed: bytes) -> SecretRow:
    """Keep it, or replace what there was: then its version is one more."""
    return SecretRow(*await connection.fetchrow(SQL["put_secret"], tenant, name, sealed))


async def list_secrets(database: Database, tenant: int, *, after: str, limit: int) -> list[SecretRow]:
    """By name."""
    return [SecretRow(*row) for row in await database.fetch("list_secrets", tenant, after, limit)]


async def find_secret(database: Database, tenant: int, name: str) -> SecretRow | None:
    row = await database.fetchrow("find_secret", tenant, name)
    return None if row is None else SecretRow(*row)


async def delete_secret(connection: Connection, tenant: int, name: str) -> SecretRow | None:
    """What it was; none if there was none."""
    row = await connection.fetchrow(SQL["delete_secret"], tenant, name)
    return None if row is None else SecretRow(*row)


class HeldRun(NamedTuple):
    """A run in a worker's hands, with all that may refer to secrets."""

    tenant: int
    job: int | None
    payload: bytes
    target: bytes | None
    spec: bytes


async def held_run(line: Line, worker: int, run: int, fence: int) -> HeldRun | None:
    """None unless this worker holds it by that claim."""
    rows: Sequence[object] = await line.fetch("held_run", worker, run, fence)
    return HeldRun(*rows[0]) if rows else None  # type: ignore[misc]
