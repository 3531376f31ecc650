"""Sealing what is stored with a tenant's new key, a page at a time, while everything else goes on."""

from typing import Final

import structlog

from foliot.domain.ids import encode
from foliot.store import resealing
from foliot.store.database import Database
from foliot.store.recovery import is_contended
from foliot.store.resealing import TABLES
from foliot.store.vault import Vault

log = structlog.get_logger("scheduler")

IDLE: Final = 2.0
"""Seconds between looks for something to do."""
MOST_ROUNDS: Final = 5
"""Looks at all the tables. What is copied from place to place while a round goes on is met by the next one; nothing is
lost if something were left, because keys are never thrown away."""


class Resealer:
    """Any number of these may run: an operation is served by whoever has its row.

    Who takes over begins again, which costs a look: what is sealed with the new key is not touched twice.
    """

    def __init__(self, database: Database, vault: Vault) -> None:
        self._line = database.line(hot=False, lock_timeout="300ms")
        self._vault = vault
        self._operation = 0
        self._begin(0)

    def _begin(self, operation: int) -> None:
        self._operation, self._round = operation, 0
        self._table, self._first, self._changed = 0, 0, 0

    async def run_once(self) -> int:
        """Seal one page; how much there was to do."""
        found = await resealing.next_reseal(self._line)
        if found is None or self._vault.master is None:
            return 0
        operation, tenant = found
        if operation != self._operation:
            self._begin(operation)
        try:
            return await self._step(operation, tenant)
        except Exception as error:
            if not is_contended(error):
                raise
            return 0

    async def pause(self) -> float:
        return 0.05 if self._operation else IDLE

    async def close(self) -> None:
        await self._line.close()

    async def _step(self, operation: int, tenant: int) -> int:
        self._vault.forget()
        lock = await self._vault.lock(tenant)
        async with self._line.borrow(atomic=True) as connection:
            if not await resealing.hold(connection, operation):
                self._begin(0)
                return 0
            if lock is None:  # switched off meanwhile
                await resealing.note(connection, operation, 0, is_last=True)
                return 1
            page = await resealing.reseal_page(connection, self._vault, lock, TABLES[self._table], self._first)
            is_last = not page.found and self._is_last_look()
            await resealing.note(connection, operation, page.changed, is_last=is_last)
        self._move_on(page)
        if is_last:
            log.info("all that is stored is encrypted with the present key", operation=encode("op", operation))
            self._begin(0)
        return 1

    def _is_last_look(self) -> bool:
        """Whether this was the end of a round in which nothing was left to do, or of the last one."""
        return self._table == len(TABLES) - 1 and (not self._changed or self._round + 1 >= MOST_ROUNDS)

    def _move_on(self, page: resealing.Page) -> None:
        self._changed += page.changed
        if page.found:
            # What could not be opened stays, and must not be met again and again.
            self._first = page.last if page.changed else page.last + 1
            return
        self._table, self._first = self._table + 1, 0
        if self._table == len(TABLES):
            self._table, self._changed, self._round = 0, 0, self._round + 1
