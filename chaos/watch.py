"""Looks at the database, past every wire, for the little that the API does not tell."""

import asyncio
from datetime import datetime
from typing import Any, Final, NamedTuple

import asyncpg

from foliot.domain.ids import encode
from foliot.kit.postgres import PostgresError, PostgresServer
from foliot.wire.codec import rfc3339

TROUBLE: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, PostgresError, TimeoutError)
_MISSED: Final = """
SELECT tenant.name AS tenant, subscription.job,
       greatest(firing.at, subscription.after + interval '1 microsecond') AS since,
       least(firing.through, subscription.until) AS through
  FROM foliot.firing JOIN foliot.subscription USING (schedule) JOIN foliot.tenant ON tenant.id = subscription.tenant
 WHERE firing.missed AND firing.through > subscription.after AND firing.at <= subscription.until
"""


class Missed(NamedTuple):
    tenant: str
    job: int
    since: datetime
    through: datetime


class Watch:
    """Remembers which worker is which process, and whose instants were missed.

    Both must be looked at all the time: a schedule's missed ranges stay on record, but whose they were is forgotten
    with the subscription that ends when its job is changed or cancelled.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.worker_ids: dict[int, str] = {}
        """Foliot's own name of each worker, by process: it registers under `host:pid`."""
        self._missed: set[Missed] = set()

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
        for row in await connection.fetch("SELECT id, name FROM foliot.worker"):
            self.worker_ids[int(row["name"].rpartition(":")[2])] = encode("wrk", row["id"])
        for row in await connection.fetch(_MISSED):
            self._missed.add(Missed(row["tenant"], row["job"], row["since"], row["through"]))

    def missed(self) -> dict[str, list[dict[str, Any]]]:
        """By tenant, as the API may give them one day."""
        found: dict[str, list[dict[str, Any]]] = {}
        for each in sorted(self._missed):
            found.setdefault(each.tenant, []).append(
                {"job": encode("job", each.job), "from": rfc3339(each.since), "through": rfc3339(each.through)}
            )
        return found
