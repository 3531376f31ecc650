"""A database whose clock stands in the test's hand: as the simulation's, Foliot's functions come first."""

from datetime import datetime, timedelta
from typing import Any

import asyncpg

from chaos.simulation.ground import clock_reading
from foliot.store.database import _SESSION
from foliot.store.migrate import shipped
from world import utc

SESSION = {**_SESSION, "search_path": "foliot, pg_catalog"}
BEGIN = utc("2026-03-02 12:00")


async def make(dsn: str) -> None:
    """Put Foliot's schema there, on a clock that is told what time it is."""
    connection = await asyncpg.connect(dsn, server_settings=SESSION)
    await connection.execute("CREATE SCHEMA foliot; CREATE SEQUENCE foliot.virtual_clock MINVALUE 0 START 0")
    await connection.execute(clock_reading("(SELECT last_value FROM foliot.virtual_clock)"))
    await connection.execute("SELECT setval('virtual_clock', $1::bigint)".replace("$1", str(_micros(BEGIN))))
    for migration in shipped():
        await connection.execute(migration.sql)
    await connection.close()


def _micros(at: datetime) -> int:
    return round(at.timestamp()) * 1_000_000 + at.microsecond


class Time:
    """The database's clock, and beside it the steady one of every process, which nobody can set."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.now = BEGIN
        self.steady = 1_000.0

    async def passes(self, seconds: float) -> None:
        self.steady += seconds
        await self.jumps(seconds)

    async def jumps(self, seconds: float) -> None:
        """The database's clock is set; no time passes."""
        self.now += timedelta(seconds=seconds)
        await self._connection.execute(f"SELECT setval('foliot.virtual_clock', {_micros(self.now)})")

    async def server_started(self, ago: float) -> None:
        at = self.now - timedelta(seconds=ago)
        await self._connection.execute(f"SELECT setval('foliot.virtual_start', {_micros(at)})")

    def __call__(self) -> float:
        return self.steady
