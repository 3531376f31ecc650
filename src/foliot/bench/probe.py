"""What a claim costs just now, whoever waits for what: one is made beside the workers' own, timed, and taken back."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from foliot.bench.produce import PAYLOAD, specs_of
from foliot.domain.ids import Block, mint
from foliot.domain.marks import RECENT, SLACK
from foliot.store.database import Connection, Database, connect
from foliot.store.specs import SpecRef
from foliot.store.statements import SQL

RUNS: Final = 100
"""In each claim, handed in by the probe itself: it finds as much each time, however little the workers leave."""
_BEFORE: Final = "SELECT v, nextval('id_block'), clock_timestamp() FROM lane WHERE id = $1"
_HEAD: Final = "SELECT v FROM lane WHERE id = $1"


class Probe:
    def __init__(self, connection: Connection, ref: SpecRef) -> None:
        self._connection = connection
        self._ref = ref
        self._worker = secrets.randbits(62)
        self._numbers = count(1)

    @classmethod
    async def made(cls, dsn: str, database: Database) -> "Probe":
        connection = await connect(dsn, hot=True, synchronous_commit="off")
        return cls(connection, (await specs_of(database, "noop"))[0])

    async def time(self) -> float:
        """Seconds that the statement of a claim took, from where a worker that keeps up would begin (`domain.marks`).

        What it hands in nobody else sees. What it takes besides, workers pass over until it is taken back: an instant.
        """
        recent = await self._connection.fetchval(_HEAD, self._ref.lane)
        await asyncio.sleep(RECENT)
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            v, block, at = await self._connection.fetchrow(_BEFORE, self._ref.lane)
            await self._connection.fetch(SQL["enqueue"], *self._batch(v, mint(Block(block, at), RUNS)))
            asked = self._worker, next(self._numbers), [self._ref.lane], [max(0, v - SLACK, recent)], RUNS, [RUNS]
            began = time.perf_counter()
            taken = await self._connection.fetch(SQL["claim"], *asked)
            seconds = time.perf_counter() - began
        finally:
            await transaction.rollback()
        if len(taken) != RUNS:
            raise AssertionError(f"a claim took {len(taken)} of {RUNS} runs that were there")
        return seconds

    def _batch(self, v: int, ids: Sequence[int]) -> tuple[Sequence[Any], ...]:
        """Arguments of `enqueue`."""
        ranks = [v + place for place in range(1, RUNS + 1)]
        same = [[each] * RUNS for each in (self._ref.tenant, self._ref.id, None, self._ref.lane)]
        return ids, *same, ranks, [None] * RUNS, [PAYLOAD] * RUNS

    async def close(self) -> None:
        await self._connection.close()
