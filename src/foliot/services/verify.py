"""Proving the audit trail: what is in the database is what was sealed, and what was signed."""

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import msgspec

from foliot.domain.audit import CHECKPOINTS, Checkpoint, Link, faults_of_checkpoints, faults_of_row
from foliot.kit.objects import Objects
from foliot.store import audit
from foliot.store.database import Database

_PAGE: Final = 1_000


class Proof(NamedTuple):
    """What was looked at, and what was found wrong."""

    entries: int
    chains: int
    checkpoints: int | None
    """None if no place is known where they are kept."""
    unsealed: int
    faults: list[str]


class Auditor:
    def __init__(self, database: Database, objects: Objects | None = None, keys: tuple[bytes, ...] = ()) -> None:
        self._database = database
        self._objects = objects
        self._keys = keys

    async def prove(self) -> Proof:
        """Read all of it, in order."""
        found = await audit.chains(self._database)
        entries, faults = 0, []
        for chain in found:
            count, wrong = await self._walk(chain)
            entries += count
            faults += wrong
        checkpoints = (
            None if self._objects is None else [each async for each in self._checkpoints(self._objects, faults)]
        )
        if checkpoints is not None:
            places = [(int(tenant), position) for each in checkpoints for tenant, (position, _) in each.heads.items()]
            faults += faults_of_checkpoints(checkpoints, self._keys, await audit.hashes_at(self._database, places))
            last = await audit.last_checkpoint(self._database)
            if last is not None and last.number > max((each.number for each in checkpoints), default=0):
                faults.append(f"checkpoint {last.number:,} was made, and is gone from where it was kept")
        unsealed, oldest = await audit.count_unsealed(self._database)
        if oldest > 600:
            faults.append(f"{unsealed:,} entries are not sealed, the oldest for {oldest:,.0f} s: does a scheduler run?")
        return Proof(entries, len(found), None if checkpoints is None else len(checkpoints), unsealed, faults)

    async def _walk(self, chain: audit.Chain) -> tuple[int, list[str]]:
        """A chain from its beginning to the first fault: what comes after it cannot be told any more."""
        head = Link()
        while rows := await audit.chain_from(self._database, chain.tenant, head.position, _PAGE):
            for entry, told in rows:
                if wrong := faults_of_row(head, entry, told):
                    return head.position, [f"tenant {chain.tenant}: {wrong}"]
                head = told
        if head != chain.head and head.position <= chain.head.position:
            return head.position, [
                f"tenant {chain.tenant}: the chain ends at {head.position:,}, not at {chain.head.position:,}"
            ]
        return head.position, []

    async def _checkpoints(self, objects: Objects, faults: list[str]) -> AsyncIterator[Checkpoint]:
        for name in await objects.list(CHECKPOINTS):
            try:
                yield Checkpoint.parse(await objects.get(name) or b"")
            except msgspec.MsgspecError:
                faults.append(f"{name} is no checkpoint")
