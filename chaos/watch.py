"""Looks at the database, past every wire, for the little that the API does not tell."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import asyncpg

from chaos import trails
from chaos.oracle import still_wanted
from chaos.records import Trail
from foliot.domain.ids import encode
from foliot.kit.postgres import PostgresError, PostgresServer
from foliot.wire.codec import rfc3339

TROUBLE: Final = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that was cut in the middle of a statement, and is asked again
    PostgresError,
    TimeoutError,
)
BOOKS: Final = "CREATE TABLE public.booked (run text NOT NULL, fence bigint NOT NULL)"
"""What handlers write in the transaction of their success. No key, so that a second row shows."""
BOOKED: Final = "SELECT run, array_agg(fence ORDER BY fence) AS fences FROM public.booked GROUP BY run ORDER BY run"
DECIDED: Final = """
SELECT run, finished_at, attempt, error FROM foliot.history
 WHERE ending = 0 AND (error LIKE 'replayed %' OR error LIKE 'discarded %') ORDER BY run, finished_at
"""
_WORKERS: Final = """
SELECT id, name, state = 2 AS dead, (SELECT count(*) FROM foliot.claim WHERE claim.worker = worker.id) AS claims
  FROM foliot.worker ORDER BY started_at
"""
_UNCALLED: Final = """
SELECT slot.id
  FROM (SELECT DISTINCT slot FROM foliot.seat WHERE state = 1) AS waiting JOIN foliot.slot ON slot.id = waiting.slot
 WHERE slot.capacity > (SELECT count(*) FROM foliot.seat WHERE seat.slot = slot.id AND seat.state = 2)
   AND NOT EXISTS (SELECT FROM foliot.knock WHERE knock.slot = slot.id)
"""
"""Lines with room in which somebody stands, and nobody has announced itself who will look after them."""
MISSED: Final = """
SELECT tenant.name AS tenant, owned.job, greatest(firing.at, owned.after + interval '1 microsecond') AS since,
       least(firing.through, owned.until) AS through, firing.at, firing.missed, firing.opened_at,
       owned.catch_up, owned.catch_up_window,
       firing.following IS NULL OR firing.following > least(firing.late_through, owned.until) AS is_last
  FROM foliot.firing
  JOIN (SELECT schedule, job, tenant, after, until, catch_up, catch_up_window FROM foliot.subscription
        UNION ALL
        SELECT schedule, job, tenant, after, until, catch_up, catch_up_window FROM foliot.past_subscription
         WHERE NOT paused) AS owned USING (schedule)
  JOIN foliot.tenant ON tenant.id = owned.tenant
 WHERE (firing.missed OR firing.late_through IS NOT NULL)
   AND firing.through > owned.after AND firing.at <= owned.until
 ORDER BY 1, 2, 3
"""
"""All that came up late, whether its job still wanted it or not: that is the oracle's to say, and not the product's.
`is_last`: nothing of the same definition that was late as well follows."""
_MODES: Final = ("none", "latest", "all")
"""Of `catch_up`, by their number."""
BACKFILLED: Final = """
SELECT operation.job, operation.id AS operation, item.run
  FROM foliot.operation JOIN foliot.operation_item AS item ON item.operation = operation.id
 WHERE item.run IS NOT NULL AND operation.job IS NOT NULL ORDER BY 1, 2, 3
"""
FILLED: Final = """
SELECT id AS operation FROM foliot.operation WHERE kind = 1 AND state <> 3 AND finished_at IS NOT NULL ORDER BY 1
"""
_WAITING: Final = """
SELECT tenant.name AS tenant, count(*) AS runs
  FROM foliot.ready JOIN foliot.run ON run.id = ready.run JOIN foliot.tenant ON tenant.id = run.tenant GROUP BY 1
"""
"""With 30,000 runs a look took 41 ms, connecting and all, beside other work."""
BEHIND: Final = """
SELECT EXISTS (SELECT FROM foliot.schedule WHERE next_at < clock_timestamp() - interval '1 second')
       OR EXISTS (SELECT FROM foliot.firing WHERE closed_at IS NULL) AS behind
"""
"""Whether instants wait to be fired: of a scheduler that died, until somebody else looks after them."""


class Seen(NamedTuple):
    """A worker as the database knows it."""

    dead: bool
    claims: int


class Watch:
    """Remembers which worker is which process and how it fares, and asks at the end whose instants were missed."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.worker_ids: dict[int, str] = {}
        """Foliot's own name of each worker, by process: it registers under `host:pid`."""
        self._seen: dict[int, Seen] = {}
        self.uncalled: set[int] = set()
        """Lines in which somebody was seen whose turn it was, and whom nobody had called."""

    async def connect(self) -> Any:
        return await asyncpg.connect(self._server.dsn, timeout=5, command_timeout=60)

    async def run(self, stop: asyncio.Event) -> None:
        connection = None
        while not stop.is_set():
            try:
                connection = connection or await self.connect()
                await self._look(connection)
            except TROUBLE:
                connection = None
            await asyncio.sleep(0.25)
        if connection is not None:
            connection.terminate()

    async def _look(self, connection: Any) -> None:
        for row in await connection.fetch(_WORKERS):
            pid = int(row["name"].rpartition(":")[2])
            self.worker_ids[pid] = encode("wrk", row["id"])
            self._seen[pid] = Seen(row["dead"], row["claims"])
        # All the time: at the end there is nothing to see, for later comers call who was left behind.
        self.uncalled.update(row["id"] for row in await connection.fetch(_UNCALLED))

    def holds(self, pid: int) -> bool:
        """Whether something is in the hands of this process's worker, dead or alive."""
        return pid in self._seen and self._seen[pid].claims > 0

    def at_work(self, pid: int) -> bool:
        """Whether it lives and holds something."""
        return self.holds(pid) and not self._seen[pid].dead

    def overtaken(self, pid: int) -> bool:
        """Whether it was declared dead and everything taken from it."""
        return pid in self._seen and self._seen[pid].dead and not self._seen[pid].claims

    async def waiting(self) -> dict[str, int]:
        """By tenant: runs that may begin, and that no worker has taken yet."""
        connection = await self.connect()
        rows = await connection.fetch(_WAITING)
        await connection.close()
        return {row["tenant"]: row["runs"] for row in rows}

    async def behind(self) -> bool:
        connection = await self.connect()
        found: bool = await connection.fetchval(BEHIND)
        await connection.close()
        return found

    async def backfilled(self) -> dict[str, dict[str, list[str]]]:
        """Which runs are back-fills': a run does not say it of itself."""
        connection = await self.connect()
        rows = await connection.fetch(BACKFILLED)
        await connection.close()
        return backfilled_runs(rows)

    async def filled(self) -> list[str]:
        """Back-fills that have come to their end, by their own word, and were not cancelled."""
        connection = await self.connect()
        rows = await connection.fetch(FILLED)
        await connection.close()
        return filled_operations(rows)

    async def open_books(self) -> None:
        connection = await self.connect()
        await connection.execute(BOOKS)
        await connection.close()

    async def booked(self) -> dict[str, list[int]]:
        connection = await self.connect()
        rows = await connection.fetch(BOOKED)
        await connection.close()
        return {row["run"]: row["fences"] for row in rows}

    async def decided(self) -> dict[str, list[dict[str, Any]]]:
        """What became of dead letters: the API tells what a run is, and not that it came back."""
        connection = await self.connect()
        rows = await connection.fetch(DECIDED)
        await connection.close()
        return decisions(rows)

    async def audited(self) -> dict[str, Trail]:
        connection = await self.connect()
        found = await trails.audit_trails(connection)
        await connection.close()
        return found

    async def kept_secret(self) -> tuple[dict[str, int], int]:
        """Where payloads can be read that should not be, by table; and how many are encrypted."""
        connection = await self.connect()
        found = await trails.exposed(connection), await trails.sealed(connection)
        await connection.close()
        return found

    async def let_out(self) -> dict[str, int]:
        """Where secrets can be read, by table."""
        connection = await self.connect()
        found = await trails.let_out(connection)
        await connection.close()
        return found

    async def missed(self) -> dict[str, list[dict[str, Any]]]:
        """By tenant, as the API may give them one day."""
        connection = await self.connect()
        rows = await connection.fetch(MISSED)
        await connection.close()
        return missed_ranges(rows)


def backfilled_runs(rows: Iterable[Any]) -> dict[str, dict[str, list[str]]]:
    """What `BACKFILLED` found, by job and back-fill."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        of_job = found.setdefault(encode("job", row["job"]), {})
        of_job.setdefault(encode("op", row["operation"]), []).append(encode("run", row["run"]))
    return found


def filled_operations(rows: Iterable[Any]) -> list[str]:
    """What `FILLED` found."""
    return [encode("op", row["operation"]) for row in rows]


def decisions(rows: Iterable[Any]) -> dict[str, list[dict[str, Any]]]:
    """What `DECIDED` found, by run."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        deed, _, by = row["error"].partition(" by ")
        told = {"deed": deed, "at": row["finished_at"].timestamp(), "attempts": row["attempt"], "by": by}
        found.setdefault(encode("run", row["run"]), []).append(told)
    return found


def missed_ranges(rows: Iterable[Any]) -> dict[str, list[dict[str, Any]]]:
    """What of `MISSED` was rightly left out, by tenant; when it came up is told too."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        late = (row["opened_at"] - row["at"]).total_seconds()
        mode, window = _MODES[row["catch_up"]], row["catch_up_window"]
        if row["missed"] or not still_wanted(mode, window, late, is_last=row["is_last"]):
            instants = {"from": rfc3339(row["since"]), "through": rfc3339(row["through"])}
            told = {"job": encode("job", row["job"]), **instants, "opened": rfc3339(row["opened_at"])}
            found.setdefault(row["tenant"], []).append(told)
    return found
