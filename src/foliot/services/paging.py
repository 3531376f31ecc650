"""The hand that cursors are written in: the same in every process of a deployment, and after a restart."""

from foliot.domain.cursor import Cursors
from foliot.domain.seal import Mac
from foliot.store.database import Database
from foliot.store.outside import cursor_key


class Paging:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._cursors: Cursors | None = None

    async def cursors(self) -> Cursors:
        """Asks the database once."""
        if self._cursors is None:
            self._cursors = Cursors(Mac(await cursor_key(self._database)))
        return self._cursors
