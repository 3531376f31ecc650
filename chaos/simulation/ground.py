"""The database under the simulation: Foliot's own schema, a clock that is told what time it is, and connections."""

import hashlib
import os
import tempfile
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from chaos.records import CROWD, CROWDED
from chaos.simulation.loop import VirtualLoop
from chaos.simulation.statement import Physical
from foliot.domain.access import Role
from foliot.services.tenants import Tenants
from foliot.store.database import Connection, Database, connect
from foliot.store.migrate import shipped

TENANTS: Final = ("acme", "globex", CROWDED)
_TICK: Final = 5_000
"""Microseconds: the database's clock is set no more often than that."""
EPOCH: Final = datetime(2026, 3, 28, tzinfo=UTC)
CHANGES: Final = (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 4, 4, 16, tzinfo=UTC))
"""When Berlin's clocks skip an hour, and when Sydney's show one twice: some seeds begin shortly before."""
_SESSION: Final = {
    "search_path": "foliot, pg_catalog",  # Foliot's time of day before PostgreSQL's
    "synchronous_commit": "off",  # nobody pulls the plug here
    "lock_timeout": "0",  # these three are kept by virtual time
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "deadlock_timeout": "20ms",
    # Else how often a connection has said a statement decides how that is done, and so in which order rows come: a seed
    # would mean another thing after other seeds. It is cheaper, too.
    "plan_cache_mode": "force_generic_plan",
}
LEAVES: Final = "12 days"
"""Leaves of history that all seeds together need: every statement about the past looks into each of them."""
# What a seed leaves behind, in tables that are not empty. Ballast stays, and what belongs to the database itself.
_KEPT: Final = ("tenant", "api_key", "key_leaf", "seal", "zone_data", "migration")
_BALLAST: Final = {"ready": "lane > 0", "run": "id > 0", "timer": "id > 0", "node": "run > 0"}
_USED: Final = """
SELECT relname AS name FROM pg_class
 WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'r' AND relname <> ALL ($1) AND pg_relation_size(oid) > 0
 ORDER BY relname
"""
_REFILL: Final = (
    "INSERT INTO shard (shard) SELECT generate_series(0, 255)",
    "INSERT INTO clock DEFAULT VALUES",
    "UPDATE key_leaf SET opened_at = clock_timestamp() WHERE closed_at IS NULL",
)
_UNDISTURBED: Final = """
DO $$ DECLARE each regclass; BEGIN
    FOR each IN SELECT oid FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind = 'r' LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', each);
    END LOOP;
END $$
"""
_CLOCK: Final = "virtual.clock"
"""A setting of the database: the file that tells it the time."""
_RESTART: Final = """
SELECT setval(quote_ident(sequencename), start_value, false) FROM pg_sequences
 WHERE schemaname = 'foliot' AND sequencename NOT LIKE 'virtual%' AND sequencename NOT LIKE 'tenant%'
"""


def _with_name(server: str, name: str) -> str:
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


def clock_reading(now: str) -> str:
    """Functions that ask for the time there: an expression of SQL."""
    return files("chaos.simulation").joinpath("clock.sql").read_text().replace("{now}", now)


class Ground:
    def __init__(self, loop: VirtualLoop, dsn: str) -> None:
        self.loop = loop
        self._dsn = dsn
        # A file, which the server reads: to tell the time costs no round trip.
        self._clock = tempfile.NamedTemporaryFile(prefix="foliot-clock-")  # noqa: SIM115 - closed with the rest
        os.fchmod(self._clock.fileno(), 0o644)  # the database runs under another account
        self._free: dict[bool, list[Physical]] = {True: [], False: []}
        self._admin: Physical
        self._told = -1
        self._offset = 0
        self.keys: dict[str, str] = {}

    @classmethod
    async def make(cls, loop: VirtualLoop, server: str, name: str) -> "Ground":
        """A fresh database called `name`, set up as `foliot migrate` would, but for its clock."""
        with loop.awaiting_answer():
            ground = cls(loop, _with_name(server, name))
            ground.tell_time()
            maker = await asyncpg.connect(server)
            template = await ground._template(maker, server)
            await maker.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            await maker.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
            await maker.execute(f"ALTER DATABASE \"{name}\" SET {_CLOCK} = '{ground._clock.name}'")
            await maker.close()
            ground._admin = Physical(await connect(ground._dsn, hot=False, **_SESSION), hot=False)
            database = await Database.open(ground._dsn, size=1)
            tenants = Tenants(database)
            ground.keys = {tenant: await tenants.create(tenant, role=Role.OPERATOR) for tenant in TENANTS}
            await tenants.set_limit(CROWDED, CROWD)
            await database.close()
        return ground

    async def _template(self, maker: Connection, server: str) -> str:
        """The name of a database with this schema and nothing else in it. Whoever comes first makes it."""
        schema = [clock_reading(f"pg_read_file(current_setting('{_CLOCK}'))::bigint")]
        schema += [migration.sql for migration in shipped()]
        schema += [f"SELECT make_history_leaves('1 day', '{LEAVES}')", _UNDISTURBED]
        name = f"simulation_{hashlib.blake2b(repr(schema).encode(), digest_size=8).hexdigest()}"
        await maker.execute("SELECT pg_advisory_lock(1)")  # until the maker hangs up
        if not await maker.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name):
            half_made = f"{name}_half_made"
            await maker.execute(f"DROP DATABASE IF EXISTS {half_made} WITH (FORCE)")
            await maker.execute(f"CREATE DATABASE {half_made}")
            session = {**_SESSION, _CLOCK: self._clock.name}
            connection = await connect(_with_name(server, half_made), hot=False, **session)
            for each in schema:
                await connection.execute(each)
            await connection.close()
            await maker.execute(f"ALTER DATABASE {half_made} RENAME TO {name}")
        return name

    async def close(self) -> None:
        with self.loop.awaiting_answer():
            for each in (*self._free[True], *self._free[False], self._admin):
                await each.connection.close()
        self._clock.close()

    def now(self) -> datetime:
        """The simulation's wall clock: the loop's time, on the day of this seed."""
        return EPOCH + timedelta(microseconds=self._microseconds())

    def seconds(self) -> float:
        return self.now().timestamp()

    def _microseconds(self) -> int:
        return self._offset + round(self.loop.time() * 1_000_000)

    def reset(self, seed: int) -> None:
        """Forget the seed before, and begin at a time of day that belongs to this one."""
        self._offset = seed * 7_919 % 86_400 * 1_000_000 + seed * 104_729 % 1_000_000
        if (turn := seed % 10) < len(CHANGES):
            before = CHANGES[turn] - EPOCH - timedelta(seconds=4)
            self._offset = before // timedelta(microseconds=1) + seed * 104_729 % 1_000_000
        self.loop.start_over()
        self._wipe()
        self.fetch(_RESTART)
        self.tell_time()
        for statement in _REFILL:
            self.fetch(statement)
        self.restarted(ago=3_600)

    def _wipe(self) -> None:
        """Rows come to lie where they would in a new database: of two due at once the first on disk comes first."""
        used = [row["name"] for row in self.fetch(_USED, _KEPT)]
        self.fetch("BEGIN")
        self.fetch("SET LOCAL session_replication_role = replica")
        for table in used:
            self.fetch(f"DELETE FROM {table} WHERE {_BALLAST.get(table, 'true')}")  # noqa: S608 - our own names
        self.fetch("COMMIT")
        self.fetch(f"VACUUM (TRUNCATE) {', '.join(used)}")

    def restarted(self, *, ago: float = 0.0) -> None:
        """Let the server believe that it was started then."""
        self.fetch("SELECT setval('virtual_start', $1)", self._at() - round(ago * 1_000_000))

    def tell_time(self) -> None:
        """Set the database's clock; it stands still until the next time."""
        if (at := self._at()) != self._told:
            self._told = at
            os.pwrite(self._clock.fileno(), b"%020d" % at, 0)

    def _at(self) -> int:
        at = round(EPOCH.timestamp()) * 1_000_000 + self._microseconds()
        return -(-at // _TICK) * _TICK

    def waits(self, physical: Physical) -> bool:
        """Whether a connection's statement waits for a lock."""
        query = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)"
        return self.fetch(query, physical.pid)[0][0]  # type: ignore[no-any-return]

    def in_a_circle(self, pids: list[int]) -> bool:
        """Whether some of these wait for each other."""
        if len(pids) < 2:
            return False
        rows = self.fetch("SELECT pid, pg_blocking_pids(pid) AS others FROM unnest($1::int[]) AS pid", pids)
        held = {row["pid"]: set(row["others"]) for row in rows}
        while free := [pid for pid, others in held.items() if not others & held.keys()]:
            for pid in free:
                del held[pid]
        return bool(held)

    def cancel(self, physical: Physical) -> None:
        self.fetch("SELECT pg_cancel_backend($1)", physical.pid)

    def fetch(self, query: str, *arguments: Any) -> list[Any]:
        """For the eyes of the harness only: takes no time, and meets no fault."""
        return self._admin.fetch(query, *arguments)

    async def lend(self, *, hot: bool) -> Physical:
        if self._free[hot]:
            return self._free[hot].pop()
        with self.loop.awaiting_answer():
            return Physical(await connect(self._dsn, hot=hot, **_SESSION), hot=hot)

    def take_back(self, physical: Physical) -> None:
        self._free[physical.hot].append(physical)
