"""What is read past the API at the end: every tenant's audit trail, and whether anything stands in clear text."""

import asyncio
from typing import Any, Final

from chaos.records import CONFIDED, CONFIDING, RATIONED, WHISPER, Trail

SEALED_WITHIN: Final = 60.0
"""Seconds: entries are sealed some seconds after the change of which they tell."""
_ENTRIES: Final = """
SELECT audit.*, (extract(epoch FROM at) * 1000000)::bigint AS micros, coalesce(tenant.name, '') AS whose
  FROM foliot.audit LEFT JOIN foliot.tenant ON tenant.id = audit.tenant ORDER BY audit.tenant, position, audit.id
"""
_HEADS: Final = """
SELECT coalesce(tenant.name, '') AS whose, position, hash
  FROM foliot.audit_chain LEFT JOIN foliot.tenant ON tenant.id = audit_chain.tenant
"""
_UNSEALED: Final = "SELECT EXISTS (SELECT FROM foliot.audit WHERE position IS NULL)"
_TABLES: Final = """
SELECT format('foliot.%I', c.relname) AS name,
       EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant') AS own
  FROM pg_class c WHERE c.relnamespace = 'foliot'::regnamespace AND c.relkind = 'r' ORDER BY 1
"""
_CANDIDATES: Final = "SELECT count(*) FROM {} AS t WHERE (t::text LIKE $1 OR t::text LIKE $2)"
_OF_TENANT: Final = " AND t.tenant::text = (SELECT id::text FROM foliot.tenant WHERE name = '{}')"
_SEALED: Final = """
SELECT count(*)
  FROM (SELECT tenant, payload FROM foliot.job UNION ALL SELECT tenant, payload FROM foliot.dead_letter) AS t
  JOIN foliot.tenant ON tenant.id = t.tenant AND tenant.name = $1
 WHERE substring(t.payload FROM 1 FOR 2) = '\\x0001'
"""


async def audit_trails(connection: Any) -> dict[str, Trail]:
    """All of them as of one moment, when nothing waits to be sealed any more, or as they are if that never comes."""
    for _ in range(round(SEALED_WITHIN)):
        if not await connection.fetchval(_UNSEALED):
            break
        await asyncio.sleep(1.0)
    async with connection.transaction(isolation="repeatable_read"):
        heads = {row["whose"]: Trail([], row["position"], row["hash"].hex()) for row in await connection.fetch(_HEADS)}
        for row in await connection.fetch(_ENTRIES):
            heads.setdefault(row["whose"], Trail([], 0, "")).entries.append(_plain(row))
    return heads


def _plain(row: Any) -> dict[str, Any]:
    entry = dict(row)
    del entry["whose"]
    entry["at"] = entry.pop("micros")
    entry["hash"] = None if entry["hash"] is None else entry["hash"].hex()
    return entry


async def exposed(connection: Any) -> dict[str, int]:
    """Rows in which a payload of the tenant that encrypts can be read, as text or as the hex of bytes, by table."""
    return await _rows_with(connection, WHISPER, _OF_TENANT.format(RATIONED))


async def let_out(connection: Any) -> dict[str, int]:
    """Rows in which a secret can be read that some handler was given, by table."""
    return await _rows_with(connection, CONFIDED, _OF_TENANT.format(CONFIDING))


async def _rows_with(connection: Any, mark: str, if_owned: str) -> dict[str, int]:
    marks = (f"%{mark}%", f"%{mark.encode().hex()}%")
    found = {}
    for table in await connection.fetch(_TABLES):
        statement = _CANDIDATES.format(table["name"]) + (if_owned if table["own"] else "")
        if count := await connection.fetchval(statement, *marks):
            found[table["name"]] = count
    return found


async def sealed(connection: Any) -> int:
    found: int = await connection.fetchval(_SEALED, RATIONED)
    return found
