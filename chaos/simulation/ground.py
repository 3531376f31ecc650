"""The database under the simulation: Foliot's own schema, a clock that is told what time it is, and connections."""

from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from chaos.simulation.loop import VirtualLoop
from foliot.domain.access import Role
from foliot.services.tenants import Tenants
from foliot.store.database import Database, connect
from foliot.store.migrate import shipped

TENANTS: Final = ("acme", "globex")
_TICK: Final = 5_000
"""Microseconds: the database's clock is set no more often than that, for every setting is a round trip."""
EPOCH: Final = datetime(2026, 3, 1, tzinfo=UTC)
CHANGES: Final = (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 4, 4, 16, tzinfo=UTC))
"""When Berlin's clocks skip an hour, and when Sydney's show one twice: some seeds begin shortly before."""
_SESSION: Final = {
    "search_path": "foliot, pg_catalog",  # Foliot's time of day before PostgreSQL's
    "synchronous_commit": "off",  # nobody pulls the plug here
    "lock_timeout": "0",  # these three are kept by virtual time
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "deadlock_timeout": "20ms",
}
# What a seed leaves behind. Ballast stays, tenants and keys too.
_WIPE: Final = (
    "DELETE FROM ready WHERE lane > 0",
    "DELETE FROM run WHERE id > 0",
    "DELETE FROM timer WHERE id > 0",
    "DELETE FROM node WHERE run > 0",
    *(
        f"DELETE FROM {table}"  # noqa: S608 - our own names
        for table in (
            "claim", "worker", "subscription", "past_subscription", "firing", "job", "schedule", "history",
            "dead_letter", "idempotency", "flow", "spec", "lane", "scheduler", "shard", "clock", "operation",
            "operation_item", "calendar", "calendar_body", "outbox", "late_result", "queue_pause", "rerank",
            "seat", "slot", "knock", "outside", "progress", "checkpoint", "dependency", "graph_run", "graph_shape",
            "event",
        )
    ),
)  # fmt: skip
# Rows are then put where they would be in a new database: of two that are due at once the first on disk comes first.
_VACUUM: Final = f"VACUUM (TRUNCATE) {', '.join(statement.split()[2] for statement in _WIPE)}"
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
_RESTART: Final = """
SELECT setval(quote_ident(sequencename), start_value, false) FROM pg_sequences
 WHERE schemaname = 'foliot' AND sequencename NOT LIKE 'virtual%' AND sequencename NOT LIKE 'tenant%'
"""


class Physical:
    """One real connection, lent to one simulated connection after the other."""

    def __init__(self, connection: Any, *, hot: bool) -> None:
        self.connection = connection
        self.hot = hot
        self.pid: int = connection.get_server_pid()


class Ground:
    def __init__(self, loop: VirtualLoop, dsn: str) -> None:
        self.loop = loop
        self._dsn = dsn
        self._free: dict[bool, list[Physical]] = {True: [], False: []}
        self._admin: Any = None
        self._told = -1
        self._offset = 0
        self.keys: dict[str, str] = {}

    @classmethod
    async def make(cls, loop: VirtualLoop, server: str, name: str) -> "Ground":
        """A fresh database called `name`, set up as `foliot migrate` would, but for its clock."""
        with loop.awaiting_answer():
            maker = await asyncpg.connect(server)
            await maker.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            await maker.execute(f'CREATE DATABASE "{name}"')
            await maker.close()
            ground = cls(loop, urlunsplit(urlsplit(server)._replace(path=f"/{name}")))
            ground._admin = await connect(ground._dsn, hot=False, **_SESSION)
            await ground._admin.execute(files("chaos.simulation").joinpath("clock.sql").read_text())
            await ground.tell_time()
            for migration in shipped():
                await ground._admin.execute(migration.sql)
            await ground._admin.fetch("SELECT make_history_leaves('1 day', '40 days')")
            await ground._admin.execute(_UNDISTURBED)
            database = await Database.open(ground._dsn, size=1)
            tenants = Tenants(database)
            ground.keys = {tenant: await tenants.create(tenant, role=Role.OPERATOR) for tenant in TENANTS}
            await database.close()
        return ground

    async def close(self) -> None:
        with self.loop.awaiting_answer():
            for each in (*self._free[True], *self._free[False]):
                await each.connection.close()
            await self._admin.close()

    def now(self) -> datetime:
        """The simulation's wall clock: the loop's time, on the day of this seed."""
        return EPOCH + timedelta(microseconds=self._microseconds())

    def seconds(self) -> float:
        return self.now().timestamp()

    def _microseconds(self) -> int:
        return self._offset + round(self.loop.time() * 1_000_000)

    async def reset(self, seed: int) -> None:
        """Forget the seed before, and begin at a time of day that belongs to this one."""
        self._offset = seed * 7_919 % 86_400 * 1_000_000 + seed * 104_729 % 1_000_000
        if (turn := seed % 10) < len(CHANGES):
            before = CHANGES[turn] - EPOCH - timedelta(seconds=4)
            self._offset = before // timedelta(microseconds=1) + seed * 104_729 % 1_000_000
        self.loop.start_over()
        with self.loop.awaiting_answer():
            async with self._admin.transaction():
                for statement in _WIPE:
                    await self._admin.execute(statement)
            await self._admin.fetch(_RESTART)
            await self._admin.execute(_VACUUM)
            await self.tell_time()
            for statement in _REFILL:
                await self._admin.execute(statement)
            await self.restarted(ago=3_600)

    async def restarted(self, *, ago: float = 0.0) -> None:
        """Let the server believe that it was started then."""
        started = self._at() - round(ago * 1_000_000)
        with self.loop.awaiting_answer():
            await self._admin.fetch("SELECT setval('virtual_start', $1)", started)

    async def tell_time(self) -> None:
        """Set the database's clock; it stands still until the next time."""
        if (at := self._at()) != self._told:
            self._told = at
            await self._admin.fetch("SELECT setval('virtual_clock', $1)", at)

    def _at(self) -> int:
        at = round(EPOCH.timestamp()) * 1_000_000 + self._microseconds()
        return -(-at // _TICK) * _TICK

    async def waits(self, physical: Physical) -> bool:
        """Whether a connection's statement waits for a lock."""
        query = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)"
        return await self._admin.fetchval(query, physical.pid)  # type: ignore[no-any-return]

    async def cancel(self, physical: Physical) -> None:
        await self._admin.fetch("SELECT pg_cancel_backend($1)", physical.pid)

    async def fetch(self, query: str) -> list[Any]:
        """For the eyes of the harness only."""
        with self.loop.awaiting_answer():
            return await self._admin.fetch(query)  # type: ignore[no-any-return]

    async def lend(self, *, hot: bool) -> Physical:
        if self._free[hot]:
            return self._free[hot].pop()
        with self.loop.awaiting_answer():
            return Physical(await connect(self._dsn, hot=hot, **_SESSION), hot=hot)

    def take_back(self, physical: Physical) -> None:
        self._free[physical.hot].append(physical)
