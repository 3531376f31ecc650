"""Sealing the audit trail: each tenant's entries become a chain, and its heads are signed and kept elsewhere."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

import structlog

from foliot.domain.audit import Checkpoint, Link, links
from foliot.kit import telemetry
from foliot.kit.objects import Objects, ObjectsError
from foliot.store import audit
from foliot.store.database import Database
from foliot.wire.codec import rfc3339

log = structlog.get_logger("audit")

TENANTS_AT_ONCE: Final = 100
ENTRIES_AT_ONCE: Final = 1_000
CHECKED_EVERY: Final = timedelta(hours=1)


class Notary(NamedTuple):
    """What signs checkpoints, and where they are kept. The first key signs; those of before are still believed."""

    objects: Objects
    keys: Sequence[bytes]


class Sealer:
    """Any number may seal: they take turns at each chain, and a place in it is taken once.

    A transaction seals some entries and moves the head of their chain, so whoever comes after a crash goes on from the
    last sealed position. Entries are sealed in the order of their ids; one whose transaction took longer comes later.
    """

    def __init__(self, database: Database, notary: Notary | None = None) -> None:
        self._database = database
        self._notary = notary
        self._troubled = False

    async def run_once(self) -> int:
        """Seal what waits; how many entries."""
        count = 0
        for tenant in await audit.tenants_to_seal(self._database, TENANTS_AT_ONCE):
            count += await self._seal(tenant)
        if not count and self._notary is not None:
            await self._checkpoint_if_due(self._notary)
        return count

    async def _seal(self, tenant: int) -> int:
        async with self._database.transaction() as connection:
            head = await audit.hold_chain(connection, tenant)
            entries = await audit.unsealed(connection, tenant, ENTRIES_AT_ONCE)
            if entries:
                await audit.seal(connection, tenant, entries, list(links(head, entries)))
        telemetry.AUDIT_SEALED.inc(len(entries))
        return len(entries)

    async def _checkpoint_if_due(self, notary: Notary) -> None:
        last = await audit.last_checkpoint(self._database)
        if last is not None and last.now - last.at < CHECKED_EVERY:
            return
        try:
            await self.checkpoint(notary)
        except ObjectsError as error:
            if not self._troubled:
                log.warning("the audit trail cannot be checkpointed", error=str(error))
            self._troubled = True
        else:
            self._troubled = False

    async def checkpoint(self, notary: Notary) -> Checkpoint | None:
        """Sign how far the chains go and put it where the database's owner cannot change it; none if none went on.

        The object comes first, and only one of a number can be made. Whoever finds it made already, because another was
        first or died before it could say so in the database, takes it over.
        """
        moved = {
            each.tenant: each.head for each in await audit.chains(self._database) if each.head.position > each.marked
        }
        if not moved:
            return None
        made = await self._next(notary, moved)
        name = made.name
        if not await notary.objects.put(name, made.body()):
            found = await notary.objects.get(name)
            if found is None or not (made := Checkpoint.parse(found)).is_signed_by(notary.keys):
                raise ObjectsError(f"{name} is there already, and is not ours: look at FOLIOT_AUDIT_KEY_FILE")
        heads = {int(tenant): position for tenant, (position, _) in made.heads.items()}
        async with self._database.transaction() as connection:
            await audit.insert_checkpoint(connection, made.number, made.body(), heads)
        return made

    async def _next(self, notary: Notary, moved: dict[int, Link]) -> Checkpoint:
        last = await audit.last_checkpoint(self._database)
        before = None if last is None else Checkpoint.parse(last.body)
        heads = {str(tenant): (head.position, head.hash.hex()) for tenant, head in moved.items()}
        at = rfc3339(await audit.clock(self._database))
        number, previous = (1, "") if before is None else (before.number + 1, before.signature)
        return Checkpoint(number, at, previous, heads).signed(notary.keys[0])

    async def pause(self) -> float:
        return 2.0

    async def close(self) -> None:
        """It has nothing of its own."""
