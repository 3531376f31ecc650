"""Looks at the database, past every wire, for the little that the API does not tell."""

import asyncio
from typing import Any, Final

import asyncpg

from foliot.domain.ids import encode
from foliot.kit.postgres import PostgresError, PostgresServer
from foliot.wire.codec import rfc3339

TROUBLE: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, PostgresError, TimeoutError)
_MISSED: Final = """
SELECT tenant.name AS tenant, owned.job, greatest(firing.at, owned.after + interval '1 microsecond') AS since,
       least(firing.through, owned.until) AS through
  FROM foliot.firing
  JOIN (SELECT schedule, job, tenant, after, until FROM foliot.subscription
        UNION ALL
        SELECT schedule, job, tenant, after, until FROM foliot.past_subscription) AS owned USING (schedule)
  JOIN foliot.tenant ON tenant.id = owned.tenant
 WHERE firing.missed AND firing.through > owned.after AND firing.at <= owned.until
 ORDER BY 1, 2, 3
"""


class Watch:
    """Remembers which worker is which process, and asks at the end whose instants were missed."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.worker_ids: dict[int, str] = {}
        """Foliot's own name of each worker, by process: it registers under `host:pid`."""

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

    async def missed(self) -> dict[str, list[dict[str, Any]]]:
        """By tenant, as the API may give them one day."""
        connection = await self.connect()
        found: dict[str, list[dict[str, Any]]] = {}
        for row in await connection.fetch(_MISSED):
            found.setdefault(row["tenant"], []).append(
                {"job": encode("job", row["job"]), "from": rfc3339(row["since"]), "through": rfc3339(row["through"])}
            )
        await connection.close()
        return found
