"""Connections to PostgreSQL: a pool for people's requests, and single lines for the hot loops."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias

import asyncpg

from foliot.domain.errors import Unavailable
from foliot.store.recovery import Refused, is_gone
from foliot.store.statements import SQL

Connection: TypeAlias = Any
"""asyncpg's; it ships no types."""
Row: TypeAlias = Any
"""One row of an answer: values by name, or in order."""
Reset: TypeAlias = Callable[[Connection], Awaitable[None]]

IDLE: Final = "5s"
"""How long a process may say nothing in mid-transaction: stopped there it keeps its locks, and a schedule would be
silent for as long."""
_SESSION: Final = MappingProxyType(
    {
        "search_path": "foliot",
        "timezone": "UTC",
        "jit": "off",
        # A generic plan takes any LIMIT for a tenth of the table: with millions of timers each look for those that are
        # due started processes of its own, which cost as much as all the claims.
        "max_parallel_workers_per_gather": "0",
        "statement_timeout": "30s",
        "idle_in_transaction_session_timeout": IDLE,
        "application_name": "foliot",
    }
)
# Tables that are empty one second and full the next mislead the planner (peers slump 4 to 48 times for 5 to 10 s after
# a cold start). The hot statements have one right plan each: walk the index, loop. These settings leave little else,
# and the ballast in the tables (see the first migration) the rest.
_HOT: Final = MappingProxyType(
    {
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
        "random_page_cost": "1.1",
        "plan_cache_mode": "force_generic_plan",
    }
)


_TO_CONNECT: Final = 10
"""Seconds."""
_NOT_TAKEN: Final = (
    asyncpg.InvalidAuthorizationSpecificationError,  # 28xxx: no such role, wrong password
    asyncpg.InvalidCatalogNameError,  # 3D000: no such database
    ValueError,  # the driver cannot make sense of the address
)


async def connect(dsn: str, *, hot: bool = False, **settings: str) -> Connection:
    """One connection to the primary, or an error that `recovery.is_gone` recognises."""
    session = {**_SESSION, **(_HOT if hot else {}), **settings}
    patience = _patience(session["statement_timeout"])
    return await asyncpg.connect(
        dsn,
        server_settings=session,
        command_timeout=patience,
        timeout=min(patience or _TO_CONNECT, _TO_CONNECT),
        target_session_attrs="read-write",
    )


def _patience(statement_timeout: str) -> float | None:
    """Seconds until a silent server is given up: a third longer than it may take, so that its own word comes first.

    This is what ends a wait on a connection that leads nowhere: no answer comes then, not even that of the time-out.
    """
    return float(statement_timeout.removesuffix("s")) * 4 / 3 or None


def _explained(error: Exception) -> Exception:
    """What became of an attempt to connect, as one of our own errors if it is a known one."""
    if isinstance(error, _NOT_TAKEN):
        return Refused(f"the database refuses us: {error}", "look at FOLIOT_DATABASE_URL")
    if is_gone(error):
        return Unavailable(f"the database cannot be reached: {error}", "is it running, and is the address right?")
    return error


class Line:
    """One connection that is opened when needed and opened again after it broke. For one user at a time."""

    def __init__(self, dsn: str, *, hot: bool = True, **settings: str) -> None:
        self._dsn = dsn
        self._hot = hot
        self._settings = settings
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()

    @classmethod
    def over(cls, connection: Connection) -> Self:
        """Speak on a connection that somebody else has opened, and closes."""
        line = cls("")
        line._connection = connection
        return line

    async def connection(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._dsn, hot=self._hot, **self._settings)
        return self._connection

    async def fetch(self, name: str, *arguments: Any) -> list[Row]:
        """Run the statement called `name` by itself, committed when this returns."""
        async with self._turn:
            try:
                return await (await self.connection()).fetch(SQL[name], *arguments)  # type: ignore[no-any-return]
            except BaseException as error:
                await self._drop_if_unusable(error)
                raise

    async def fetchval(self, name: str, *arguments: Any) -> Any:
        rows = await self.fetch(name, *arguments)
        return next(iter(rows[0].values())) if rows else None

    @asynccontextmanager
    async def borrow(self, *, atomic: bool) -> AsyncIterator[Connection]:
        """The connection, in a transaction if `atomic`; a single statement needs none and saves two round trips."""
        async with self._turn:
            try:
                connection = await self.connection()
                async with connection.transaction() if atomic else nullcontext():
                    yield connection
            except BaseException as error:
                await self._drop_if_unusable(error)
                raise

    async def _drop_if_unusable(self, error: BaseException) -> None:
        """A connection that failed under a statement, or was left in the middle of one, is not used again."""
        if self._connection is not None and (is_gone(error) or isinstance(error, asyncio.CancelledError)):
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


API_ROLE: Final = "foliot_api"
"""To which the server shows one tenant's rows at a time; see `guard_tables` in the migrations."""
ACTING_FOR: Final[ContextVar[int | None]] = ContextVar("acting_for", default=None)
"""The tenant whose request is being answered."""
LOOKING: Final[ContextVar[bool]] = ContextVar("looking", default=False)
"""Whether that request changes nothing: then it is worth less time."""
LOOK: Final = "5s"
"""How long one statement of a request may take that changes nothing; one that does may have to wait for locks."""


class Database:
    """A pool of connections to the primary."""

    def __init__(self, dsn: str, pool: asyncpg.Pool) -> None:
        self.dsn = dsn
        self._pool = pool

    @classmethod
    async def open(cls, dsn: str, *, size: int = 8, reset: Reset | None = None, **settings: str) -> Self:
        """Connect once, to be sure of the way there; `Unavailable` if it may be open later, `Refused` if not.

        `reset` is what is done with a connection that comes back, instead of all that the driver would clean.
        """
        pool = asyncpg.create_pool(
            dsn,
            min_size=0,  # the driver would keep more alive by itself, and fill the log while the server is away
            max_size=size,
            server_settings={**_SESSION, **settings},
            reset=reset,
            command_timeout=_patience(_SESSION["statement_timeout"]),
            timeout=_TO_CONNECT,
            target_session_attrs="read-write",
        )
        try:
            await pool
            async with pool.acquire(timeout=10):
                return cls(dsn, pool)
        except Exception as error:
            pool.terminate()
            raise _explained(error) from error

    async def close(self) -> None:
        self._pool.terminate()

    def line(self, *, hot: bool = True, **settings: str) -> Line:
        """A connection of one's own, outside the pool."""
        return Line(self.dsn, hot=hot, **settings)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Borrow a connection; a lost server becomes `Unavailable`, which callers may answer with "try again"."""
        try:
            async with self._pool.acquire(timeout=10) as connection:
                yield connection
        except Exception as error:
            if not is_gone(error):
                raise
            await self._pool.expire_connections()
            raise Unavailable("the database cannot be reached", "try again in a few seconds") from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def fetch(self, name: str, *arguments: Any) -> list[Row]:
        async with self.connection() as connection:
            return await connection.fetch(SQL[name], *arguments)  # type: ignore[no-any-return]

    async def fetch_anew(self, name: str, *arguments: Any) -> list[Row]:
        """As `fetch`, planned for just these arguments: for statements whose right plan depends on what is asked for.

        A statement that is kept is planned for any arguments after a few calls, by then without an index for a filter
        that may be absent. To plan costs 1 to 3 ms, as much as to read a page.
        """
        async with self.connection() as connection:
            statement = await connection.prepare(SQL[name], name="")
            return await statement.fetch(*arguments)  # type: ignore[no-any-return]

    async def fetchrow(self, name: str, *arguments: Any) -> Row | None:
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None

    async def fetchval(self, name: str, *arguments: Any) -> Any:
        row = await self.fetchrow(name, *arguments)
        return None if row is None else next(iter(row.values()))

    @property
    def is_guarded(self) -> bool:
        """Whether the server shows one tenant's rows at a time, whatever a statement asks for."""
        return False

    async def guarded(self, *, size: int) -> "Database | None":
        """The same database for the tenant that is acted for and nobody else; none if the role for it is missing."""
        if not await self.fetchval("may_be_guarded", API_ROLE):
            return None
        return await TenantDatabase.open(self.dsn, size=size, reset=_as_it_is, role=API_ROLE)


async def _as_it_is(_: Connection) -> None:
    """The driver has ended an open transaction by now."""


class TenantDatabase(Database):
    """A pool whose connections show what belongs to the tenant that is acted for and no more; without one, nothing.

    Whoever takes a connection says for whom, and whether only to look. Nothing else is ever set on one, so there is
    nothing to take back when it returns: the exchange that is saved pays for the one that is added.
    """

    @property
    def is_guarded(self) -> bool:
        return True

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with super().connection() as connection:
            tenant, looks = ACTING_FOR.get(), LOOKING.get()
            patience = LOOK if looks else _SESSION["statement_timeout"]
            await connection.fetchval(SQL["act_for"], "" if tenant is None else str(tenant), patience)
            try:
                yield connection
            except asyncpg.QueryCanceledError:
                if not looks:
                    raise
                hint = "ask for less: a shorter time (since, until), one job, one status, no text"
                raise Unavailable(f"there is too much to look through: it took longer than {LOOK}", hint) from None
