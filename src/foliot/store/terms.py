"""Limits and quotas of tenants and keys, what is used of them, and what is left for all processes together."""

from collections.abc import Sequence
from typing import NamedTuple

from foliot.domain.bucket import RateLimit
from foliot.domain.terms import Quota, Terms, check_quota
from foliot.store.database import Connection, Database, Row
from foliot.store.statements import SQL


class Named(NamedTuple):
    """A tenant's number, and what is set for it."""

    tenant: int
    terms: Terms
    version: int


async def read_terms(database: Database, name: str) -> Named | None:
    row = await database.fetchrow("read_terms", name)
    return None if row is None else _named(row)


async def hold_terms(connection: Connection, name: str) -> Named | None:
    """Locked until the transaction ends."""
    row = await connection.fetchrow(SQL["hold_terms"], name)
    return None if row is None else _named(row)


async def change_terms(connection: Connection, tenant: int, terms: Terms) -> None:
    rate = terms.rate or (None, None)
    await connection.execute(SQL["change_terms"], tenant, *rate, terms.backlog, *terms.quota)


async def change_key_rate(connection: Connection, tenant: int, key: str, rate: RateLimit | None) -> None:
    await connection.execute(SQL["change_key_rate"], tenant, key, *(rate or (None, None)))


async def hold_quota(connection: Connection, tenant: int) -> tuple[str, Quota] | None:
    """Its name and quota, and nobody else adds to what is counted until the transaction ends; none without one."""
    row = await connection.fetchrow(SQL["hold_quota"], tenant)
    return None if row is None else (row["name"], Quota(*row[1:]))


async def count_used(connection: Connection, tenant: int, quota: Quota) -> dict[str, int | None]:
    """What it has of what it has a quota for, counted to one more than that."""
    jobs, schedules = await connection.fetchrow(SQL["count_jobs"], tenant, quota.jobs, quota.schedules)
    keys = None if quota.keys is None else await connection.fetchval(SQL["count_keys"], tenant, quota.keys)
    return {"jobs": jobs, "schedules": schedules, "keys": keys}


async def respect_quota(connection: Connection, tenant: int, **adding: int) -> None:
    """QuotaExceeded unless the tenant may have so many more. To be asked in the transaction that makes them."""
    if any(adding.values()) and (held := await hold_quota(connection, tenant)):
        name, whole = held
        quota = Quota(**{what: getattr(whole, what) for what, count in adding.items() if count})
        check_quota(name, quota, await count_used(connection, tenant, quota), adding)


class Report(NamedTuple):
    """What one process let in of a limit since it last told; `key` is empty for the tenant's own."""

    tenant: int
    key: str
    limit: RateLimit
    spent: int
    asked: int


class Level(NamedTuple):
    """What is left for all, and how much was ever asked for."""

    left: float
    asked: int


async def settle_allowances(database: Database, reports: Sequence[Report]) -> dict[tuple[int, str], Level]:
    """Take what was spent out of what is left for all, and tell what that is now."""
    columns = [list(column) for column in zip(*map(_flat, reports), strict=True)]
    rows = await database.fetch("settle_allowances", *columns)
    if len(rows) < len(reports):
        known = {(row["tenant"], row["key"]) for row in rows}
        missing = [each for each in reports if (each.tenant, each.key) not in known]
        tenants, keys, _, bursts, _, _ = ([*column] for column in zip(*map(_flat, missing), strict=True))
        await database.fetch("open_allowances", tenants, keys, bursts)
        rows += await database.fetch("settle_allowances", *([*c] for c in zip(*map(_flat, missing), strict=True)))
    return {(row["tenant"], row["key"]): Level(row["level"], row["asked"]) for row in rows}


def _flat(report: Report) -> tuple[int, str, float, int, int, int]:
    return report.tenant, report.key, *report.limit, report.spent, report.asked


async def drop_allowances(database: Database) -> None:
    await database.fetch("drop_allowances")


async def sample_backlog(database: Database) -> dict[int, int]:
    """How many runs of each tenant are due and have not ended, more or less."""
    return {row["tenant"]: row["runs"] for row in await database.fetch("sample_backlog")}


def _named(row: Row) -> Named:
    number, version, rate, burst, backlog, *quota = row
    limit = None if rate is None else RateLimit(rate, burst)
    return Named(number, Terms(limit, backlog, Quota(*quota)), version)
