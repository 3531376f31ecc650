"""Hanging up on who was cut off in the middle of a statement: it keeps its locks, and the server waits for it."""

from datetime import timedelta
from typing import Final

import structlog

from foliot.store.database import IDLE, Database

log = structlog.get_logger("patrol")

BETWEEN: Final = 2.0
"""Seconds between two looks."""
PATIENCE: Final = timedelta(seconds=float(IDLE.removesuffix("s")))
"""As the server has with those who say nothing between two statements."""


class Patrol:
    """Sees to what no time-out of the server's does (`hang_up` says why), by a connection that waits for nobody."""

    def __init__(self, database: Database, patience: timedelta = PATIENCE) -> None:
        self._database = database
        self._patience = patience

    async def run_once(self) -> int:
        """Look once; how many were hung up on."""
        silent = await self._database.fetch("hang_up", self._patience)
        if silent:
            log.warning("hung up on who said nothing in the middle of a statement", connections=len(silent))
        return len(silent)

    async def pause(self) -> float:
        return BETWEEN

    async def close(self) -> None:
        """It has nothing of its own."""
