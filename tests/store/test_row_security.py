"""The server itself keeps tenants apart: in the API's role, whatever a statement asks for, there is one tenant."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from burying import bury
from foliot.store.database import ACTING_FOR, API_ROLE, Database
from foliot.store.migrate import migrate
from world import World

NOT_OURS = {"migration", "api_key"}
"""Tables that the role has nothing to do with."""
ONE_TENANTS = {"job", "spec", "run", "timer", "history", "dead_letter", "subscription", "idempotency", "operation"}


async def tables(world: World, condition: str) -> dict[str, bool]:
    rows = await world.sql(
        "SELECT c.relname, c.relrowsecurity AND EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid) AS guarded"
        "  FROM pg_class c WHERE relnamespace = 'foliot'::regnamespace AND relkind IN ('r', 'p')"
        f"   AND NOT relispartition AND {condition}"
    )
    return {row["relname"]: row["guarded"] for row in rows}


async def test_every_table_that_has_a_tenant_is_guarded(world: World):
    owned = await tables(
        world,
        "(relname = 'tenant' OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'tenant'))",
    )
    assert {name for name, guarded in owned.items() if not guarded} == {"api_key"}
    assert owned.keys() >= ONE_TENANTS | {"tenant"}
    views = await world.sql(
        "SELECT relname FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'v'"
        " AND NOT 'security_invoker=true' = ANY (coalesce(reloptions, '{}'))"
    )
    assert not views, "a view shows what its owner may see"


async def test_the_role_is_bound_and_has_nothing_to_do_with_keys(world: World):
    (role,) = await world.sql("SELECT * FROM pg_roles WHERE rolname = $1", API_ROLE)
    assert not any(role[name] for name in ("rolsuper", "rolbypassrls", "rolcanlogin", "rolcreaterole"))
    for name in await tables(world, "true"):
        may = await world.value("SELECT has_table_privilege($1, $2, 'SELECT')", API_ROLE, name)
        assert may == (name not in NOT_OURS), name
    leaves = (
        "SELECT bool_or(has_table_privilege($1, oid, 'SELECT')) FROM pg_class WHERE relispartition AND relkind = 'r'"
    )
    assert not await world.value(leaves, API_ROLE), "a leaf is a way round its table's guard"


async def test_a_tenant_sees_and_writes_its_own_rows_and_nobody_without_a_tenant_sees_any(world: World):
    rival = await world.another_tenant("rival")
    for tenant in (world.tenant, rival):
        await world.job(tenant=tenant)
        await world.submit(2, tenant=tenant)
        await bury(world, tenant=tenant)
    database = await world.database.guarded(size=2)
    assert database is not None
    try:
        async with database.connection() as connection:
            for name in await tables(world, "relrowsecurity"):
                assert not await connection.fetchval(f"SELECT count(*) FROM {name}"), name
        ACTING_FOR.set(rival)
        async with database.connection() as connection:
            for name in ("job", "spec", "run", "dead_letter", "subscription", "job_view", "live_run", "letter"):
                seen = await connection.fetch(f"SELECT DISTINCT tenant FROM {name}")
                assert [row["tenant"] for row in seen] == [rival], name
            assert [row["name"] for row in await connection.fetch("SELECT name FROM tenant")] == ["rival"]
            assert await connection.execute("UPDATE job SET name = 'mine'") == "UPDATE 1"
            assert await connection.execute("DELETE FROM run WHERE tenant = $1", world.tenant) == "DELETE 0"
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
                await connection.execute("UPDATE job SET tenant = $1", world.tenant)
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.fetch("SELECT * FROM api_key")
        ACTING_FOR.set(None)
        async with database.connection() as connection:
            assert not await connection.fetchval("SELECT count(*) FROM job"), "the pool kept the last tenant"
    finally:
        ACTING_FOR.set(None)
        await database.close()


async def test_what_comes_later_is_guarded_by_the_next_migration_and_nothing_is_done_twice(world: World, dsn: str):
    await world.sql("CREATE TABLE foliot.note (tenant integer NOT NULL, text text)")
    await world.sql("CREATE OR REPLACE VIEW foliot.notes AS SELECT * FROM foliot.note")
    for _ in range(2):
        assert await migrate(dsn) == []
    assert (await tables(world, "relname = 'note'"))["note"]
    assert await world.value("SELECT has_table_privilege($1, 'notes', 'SELECT')", API_ROLE)


async def test_who_may_not_make_roles_goes_on_without(server_of_nobody: str):
    """As on a managed server: an owner without the right to make roles, and nobody has made ours."""
    await migrate(server_of_nobody)
    database = await Database.open(server_of_nobody, size=1)
    try:
        assert await database.guarded(size=1) is None
    finally:
        await database.close()


@pytest.fixture
async def server_of_nobody(empty_dsn: str) -> AsyncIterator[str]:
    """An empty database whose owner is a stranger to the role."""
    admin = await asyncpg.connect(empty_dsn)
    name = await admin.fetchval("SELECT current_database()")
    await admin.execute(f"CREATE ROLE {name}_owner LOGIN PASSWORD 'owner'")
    await admin.execute(f"GRANT CREATE ON DATABASE {name} TO {name}_owner")
    try:
        yield _as(empty_dsn, f"{name}_owner")
    finally:
        await admin.execute(f"DROP OWNED BY {name}_owner CASCADE")
        await admin.execute(f"DROP ROLE {name}_owner")
        await admin.close()


def _as(dsn: str, user: str) -> str:
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:owner@{host}"))
