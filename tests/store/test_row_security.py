"""The server itself keeps tenants apart: in the API's role, whatever a statement asks for, there is one tenant."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from burying import bury
from foliot.cli.compose import CannotStart, bind, check_walls
from foliot.cli.examine import _row_security
from foliot.kit.settings import Settings
from foliot.store.database import ACTING_FOR, API_ROLE, Database
from foliot.store.migrate import migrate
from foliot.store.outside import signing_key
from foliot.store.reports import progress_of_runs
from world import World

CLOSED = {
    "migration": "the schema's own books",
    "api_key": "keys are found and made by the owner: who asks has no tenant before its key is known",
    "seal": "all that Foliot signs is signed with keys made from this one",
    "checkpoint": "what attempts leave for the next one: workers read it, and nobody else",
    "audit_chain": "who answers requests does not seal them",
    "audit_checkpoint": "nor sign them",
}
"""Tables that the role has nothing to do with, and why."""
GROWING = {"audit", "data_key", "canary"}
"""Tables to which the role adds, and in which it changes nothing."""
OPEN = {
    "calendar_body": "what calendars mean, without names or owners, found by digest",
    "canary": "a known text, wrapped by the master key",
    "claim": "batches of run ids, of all tenants; cancelling asks who holds a run",
    "clock": "one row: the latest time of the database's clock",
    "dependency": "pairs of jobs by their ids, reached through the jobs",
    "firing": "instants of schedules, which have a tenant, and how far each got",
    "graph_shape": "ids of jobs and edges between them, reached through graph_run, which has a tenant",
    "key_leaf": "which leaf of the idempotency keys is open",
    "knock": "lines that somebody joined while another had them locked, by number",
    "lane": "queues and handler groups, which tenants share",
    "operation_item": "instants and run ids, reached through operation, which has a tenant",
    "outside": "ids and times of attempts that go on outside; cancelling ends them",
    "queue_pause": "queues are shared",
    "ready": "lane, rank and run id: the order of all tenants is one",
    "scheduler": "processes, not tenants",
    "seat": "places in lines, by run id",
    "shard": "parts of the schedules, and which scheduler has each",
    "slot": "lines by number, and how many each lets in",
    "worker": "processes, which tenants share; its key is an id, not a secret",
    "zone_data": "which time zone data is in force",
}
"""Tables without a tenant that the role reaches, and why that tells nobody of another: ids, and what is shared."""
ONE_TENANTS = {"job", "spec", "run", "timer", "history", "dead_letter", "subscription", "idempotency", "operation"}


async def tables(world: World, condition: str) -> dict[str, bool]:
    rows = await world.sql(
        "SELECT c.relname, c.relrowsecurity AND EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid) AS guarded"
        "  FROM pg_class c WHERE relnamespace = 'foliot'::regnamespace AND relkind IN ('r', 'p')"
        f"   AND NOT relispartition AND {condition}"
    )
    return {row["relname"]: row["guarded"] for row in rows}


async def test_every_table_is_guarded_or_closed_or_known_to_be_nobodys(world: World):
    """A new one without a tenant fails here until somebody has said why it may be seen by all."""
    found = await tables(world, "true")
    assert {name for name, guarded in found.items() if not guarded} - CLOSED.keys() == OPEN.keys()
    assert found.keys() >= CLOSED.keys()


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
        assert may == (name not in CLOSED), name
        privileges = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
        has = {
            each
            for each in privileges
            if await world.value("SELECT has_table_privilege($1, $2, $3)", API_ROLE, name, each)
        }
        expected = {"INSERT"} if name in GROWING else {"INSERT", "UPDATE", "DELETE"}
        assert has == (set() if name in CLOSED else expected), name
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
            for name in (await tables(world, "relrowsecurity")).keys() - CLOSED.keys():
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


async def test_the_role_is_told_what_its_tenants_calls_are_signed_with_and_no_other_key(world: World):
    rival = await world.another_tenant("rival")
    keys = {tenant: await signing_key(world.database, tenant) for tenant in (world.tenant, rival)}
    assert len(set(keys.values())) == 2
    own = await world.database.guarded(size=1)
    assert own is not None
    try:
        assert await signing_key(own, rival) is None, "nobody is acted for"
        ACTING_FOR.set(rival)
        assert await signing_key(own, rival) == keys[rival]
        assert await signing_key(own, world.tenant) is None
        for purpose in ("calls", "worker", "cursors"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await own.fetch("derived_key", purpose, 0)
    finally:
        ACTING_FOR.set(None)
        await own.close()
    everybody = "SELECT has_function_privilege('public', 'signing_key(integer)', 'EXECUTE')"
    assert not await world.value(everybody)


async def test_what_an_attempt_says_is_seen_by_its_tenant_only(world: World):
    run = (await world.submit())[0]
    await world.sql(
        "INSERT INTO progress (run, fence, message, at, tenant) VALUES ($1, 1, 'half', now(), $2)", run, world.tenant
    )
    assert await progress_of_runs(world.database, world.tenant, [run])
    assert not await progress_of_runs(world.database, world.tenant + 1, [run])
    own = await world.database.guarded(size=1)
    assert own is not None
    try:
        for tenant, seen in ((None, 0), (world.tenant + 1, 0), (world.tenant, 1)):
            ACTING_FOR.set(tenant)
            async with own.connection() as connection:
                assert await connection.fetchval("SELECT count(*) FROM progress") == seen
    finally:
        ACTING_FOR.set(None)
        await own.close()


async def test_what_comes_later_is_guarded_by_the_next_migration_and_nothing_is_done_twice(world: World, dsn: str):
    await world.sql("CREATE TABLE foliot.note (tenant integer NOT NULL, text text)")
    await world.sql("CREATE OR REPLACE VIEW foliot.notes AS SELECT * FROM foliot.note")
    for _ in range(2):
        assert await migrate(dsn) == []
    assert (await tables(world, "relname = 'note'"))["note"]
    assert await world.value("SELECT has_table_privilege($1, 'notes', 'SELECT')", API_ROLE)


async def test_who_may_not_make_roles_goes_on_without_among_itself(server_of_nobody: str):
    """As on a managed server: an owner without the right to make roles, and nobody has made ours."""
    await migrate(server_of_nobody)
    database = await Database.open(server_of_nobody, size=1)
    settings = Settings.read({"FOLIOT_DATABASE_URL": server_of_nobody})
    try:
        assert await database.guarded(size=1) is None
        found = await _row_security(settings)
        assert (found.word, API_ROLE in found.hint) == ("WARN", True)
        with bind("127.0.0.1", 0) as near:
            check_walls(database, near, settings)
        with bind("0.0.0.0", 0) as far:
            check_walls(database, far, settings._replace(one_wall=True))
            with pytest.raises(CannotStart, match="does not keep tenants apart") as refused:
                check_walls(database, far, settings)
            assert "FOLIOT_ONE_WALL" in refused.value.hint
            assert far.fileno() < 0, "it listens no more"
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
