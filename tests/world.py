"""Short words for what tests do: make jobs and runs, claim, settle, move time, look."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Self

import msgspec

from foliot.api.patch import merged
from foliot.domain.access import Role
from foliot.domain.ids import decode
from foliot.domain.outcome import SUCCEEDED, Outcome
from foliot.domain.shards import EVERYTHING
from foliot.domain.spec import FunctionHandler, Spec
from foliot.kit.master import LocalMaster
from foliot.services.audit import AuditTrail
from foliot.services.calendars import CalendarKeeper
from foliot.services.cancel import Canceller
from foliot.services.complete import Completer
from foliot.services.control import Control
from foliot.services.dead_letters import DeadLetters
from foliot.services.encryption import Encryption
from foliot.services.explain import Explainer
from foliot.services.fire import Firer
from foliot.services.fleet import Fleet
from foliot.services.gateway import Gateway
from foliot.services.graphs import Graphs
from foliot.services.insights import Insights
from foliot.services.insights.jobs import draft_again, job_view
from foliot.services.ledger import Ledger
from foliot.services.operations import Operations
from foliot.services.promote import Promoter
from foliot.services.secrets import Secrets
from foliot.services.submit import Submitter
from foliot.services.tenants import Tenants
from foliot.store import dispatch, fleet
from foliot.store.database import Connection, Database, Line, Row
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.specs import SpecBook, ensure_lanes
from foliot.store.statements import SQL
from foliot.store.submission import NewRun
from foliot.store.tenants import find_tenant
from foliot.store.vault import NO_VAULT, Vault
from foliot.wire.job_views import JobView
from foliot.wire.jobs import JobBody, draft_of

MASTER = LocalMaster([bytes(range(32))])
NOOP = Spec(handler=FunctionHandler("noop"))
PATIENCE = 30.0
"""Seconds after which something that a test waits for will not happen any more."""


def utc(text: str) -> datetime:
    """`utc("2026-03-01 09:00")`"""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class World:
    """One tenant in one database, with every service at hand; nothing runs by itself but submitter and gateway."""

    def __init__(self, database: Database, tenant: int, key: str, *, sealed: bool = False) -> None:
        """`sealed`: what tenants write is encrypted, for those that have it switched on."""
        self.database = database
        self.vault = Vault(database, MASTER)
        vault = self.vault_in_use = self.vault if sealed else NO_VAULT
        self.tenant = tenant
        self.key = key
        self.began = datetime.now(UTC)
        self.hints: list[str] = []
        self.specs = SpecBook(database)
        self.control = Control(database, self.specs, self.hints.append, vault)
        self.submitter = Submitter(database, self.hints.append, vault)
        self.insights = Insights(database, vault)
        self.secrets = Secrets(database, self.vault)
        self.encryption = Encryption(database, self.vault)
        self.ledger = Ledger(database)
        self.explainer = Explainer(database, vault)
        self.operations = Operations(database, self.hints.append)
        self.calendars = CalendarKeeper(database)
        self.dead_letters = DeadLetters(database, self.hints.append, vault)
        self.graphs = Graphs(database, self.hints.append, vault)
        self.fleet = Fleet(database, self.hints.append)
        self.gateway = Gateway(database, self.hints.append, vault=vault)
        self.canceller = Canceller(database, self.specs, self.hints.append)
        self.audit = AuditTrail(database)
        self.completer = Completer(database, self.hints.append, lambda: 0.0, vault)
        self.firer = Firer(database)
        self.promoter = Promoter(database)
        self._workers: list[Line] = []

    @classmethod
    @asynccontextmanager
    async def begin(cls, database: Database, *, sealed: bool = False) -> AsyncIterator[Self]:
        key = await Tenants(database).create("acme", ["*"], Role.OPERATOR)
        tenant = await find_tenant(database, "acme")
        assert tenant is not None
        world = cls(database, tenant, key, sealed=sealed)
        tasks = [asyncio.create_task(each.run()) for each in (world.submitter, world.gateway)]
        yield world
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for line in (*world._workers, world.firer, world.promoter):
            await line.close()

    async def sql(self, query: str, *arguments: Any) -> list[Row]:
        async with self.database.connection() as connection:
            return await connection.fetch(query, *arguments)

    async def value(self, query: str, *arguments: Any) -> Any:
        async with self.database.connection() as connection:
            return await connection.fetchval(query, *arguments)

    async def count(self, table: str) -> int:
        """Rows of a table that are not ballast."""
        mine = {"run": "id > 0", "timer": "id > 0", "ready": "lane > 0"}.get(table, "true")
        return await self.value(f"SELECT count(*) FROM {table} WHERE {mine}")  # type: ignore[no-any-return]

    async def until(self, query: str, *arguments: Any) -> None:
        """Return when `query` answers true."""
        async with asyncio.timeout(PATIENCE):
            while not await self.value(query, *arguments):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.005)

    async def until_waiting(self, count: int = 1) -> None:
        """Return when that many statements in this database wait for a lock."""
        await self.until(
            "SELECT count(*) >= $1 FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'",
            count,
        )

    @asynccontextmanager
    async def unfinished(self) -> AsyncIterator["Unfinished"]:
        """Somebody in the middle of a transaction, which is committed at the end of the block."""
        async with self.database.transaction() as connection:
            yield Unfinished(connection)

    async def another_tenant(self, name: str = "globex") -> int:
        await Tenants(self.database).create(name)
        return await self.value("SELECT id FROM tenant WHERE name = $1", name)  # type: ignore[no-any-return]

    async def submit(self, count: int = 1, spec: Spec = NOOP, *, tenant: int | None = None, **fields: Any) -> list[int]:
        ref = await self.specs.intern(tenant or self.tenant, spec)
        accepted = await self.submitter.submit([NewRun(ref, b"{}", **fields) for _ in range(count)])
        return list(accepted.ids)

    async def job(self, *, tenant: int | None = None, **fields: Any) -> JobView:
        """Create a job from fields in the wire's spelling; by default one that a schedule fires every minute."""
        fields = {"name": "report", "handler": "noop", **fields}
        if not fields.keys() & {"cronExpression", "every", "scheduleAt", "onDemand"}:
            fields["every"] = "PT1M"
        fields.pop("onDemand", None)
        draft = draft_of(msgspec.json.decode(msgspec.json.encode(fields), type=JobBody))
        body = await self.control.create(
            tenant or self.tenant, draft, render=lambda row: msgspec.json.encode(job_view("acme", row))
        )
        return msgspec.json.decode(body, type=JobView)

    async def job_id(self, **fields: Any) -> int:
        """Create a job; its number."""
        return decode("job", (await self.job(**fields)).job_id)

    async def status(self, job: int) -> str:
        return (await self.insights.job(self.tenant, "acme", job)).status

    def half_way(self, period: timedelta) -> str:
        """Since when a job of that period fires, so that its next instant is half a period away when a test begins.

        Without it instants fall on full minutes, hours and days, and one may come up while a test looks.
        """
        return (self.began - 1_000.5 * period).isoformat()

    async def next_at(self) -> datetime:
        """When the only schedule fires next."""
        return await self.value("SELECT next_at FROM schedule")  # type: ignore[no-any-return]

    async def resume(self, job: int) -> Any:
        return await self.control.resume(self.tenant, job, partial(draft_again, self.tenant))

    async def change(self, job: int, **fields: Any) -> None:
        """Change fields of a job, in the wire's spelling, as a PATCH does."""
        patch = msgspec.json.encode(fields)
        await self.control.change(self.tenant, job, lambda row: draft_of(merged(row, patch), self.tenant))

    async def worker(self, *functions: str) -> "Hand":
        """A registered worker that claims and settles when told to."""
        line = self.database.line()
        self._workers.append(line)
        number = len(self._workers)
        lanes = await ensure_lanes(line, ["default"], [f"fn:{name}" for name in functions or ("noop",)])
        await fleet.register(line, number, f"hand {number}", list(lanes))
        return Hand(line, number, list(lanes))

    async def fire(self, now: datetime | None = None) -> None:
        """Fire until nothing is left to do."""
        while await self.firer.run_once(now):
            pass

    async def advance(self, now: datetime | None = None) -> int:
        """Move schedules on that have come up, as one round does, but make no runs of what that opens."""
        advancer = self.firer._advancer
        due = await advancer.look(EVERYTHING, now)
        moved = await advancer.on_time(due, wait=True)
        return moved + await advancer.late(due, wait=True) if due.late else moved

    async def make_overdue(self, by: timedelta) -> None:
        """Let every schedule have slept: as if nobody had fired for that long."""
        await self.sql("UPDATE foliot.schedule SET cursor = cursor - $1::interval, next_at = next_at - $1", by)
        await self.sql("UPDATE foliot.subscription SET after = after - $1::interval", by)


class Unfinished(Line):
    """A line whose statements are committed together, when the test says so."""

    def __init__(self, connection: Connection) -> None:
        super().__init__("")
        self._connection = connection

    async def execute(self, query: str, *arguments: Any) -> None:
        await (await self.connection()).execute(query, *arguments)

    async def run(self, name: str, *arguments: Any) -> None:
        await self.execute(SQL[name], *arguments)


class Hand:
    """A worker by hand."""

    def __init__(self, line: Line, number: int, lanes: Sequence[int]) -> None:
        self.line = line
        self.id = number
        self.lanes = lanes
        self._claims = 0

    async def claim(self, most: int = 100) -> list[Claimed]:
        self._claims += 1
        return await dispatch.claim(self.line, self.id, self._claims, self.lanes, [0] * len(self.lanes), most)

    def on(self, line: Line) -> "Hand":
        """The same worker, speaking on another line."""
        return Hand(line, self.id, self.lanes)

    async def die(self) -> None:
        await fleet.leave(self.line, self.id)

    async def note_started(self, runs: Sequence[Claimed]) -> set[tuple[int, int]]:
        return await dispatch.note_started(self.line, self.id, [(run, datetime.now(UTC)) for run in runs])

    async def settle(self, runs: Sequence[Claimed]) -> int:
        now = datetime.now(UTC)
        return await dispatch.settle(self.line, self.id, [Settlement(run, now, SUCCEEDED) for run in runs])

    async def conclude(self, runs: Sequence[Claimed], outcome: Outcome) -> int:
        now = None if outcome == Outcome.released() else datetime.now(UTC)
        return await dispatch.conclude(self.line, self.id, [Settlement(run, now, outcome) for run in runs])
