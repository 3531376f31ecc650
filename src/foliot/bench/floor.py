"""The raw floor: the store's own statements for enqueue, claim and settle in a bare loop, and nothing else."""

import asyncio
import gc
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count, cycle
from typing import Any, Final

import msgspec
import uvloop

from foliot.bench.produce import PAYLOAD, specs_of
from foliot.domain.fairness import UNIT
from foliot.store.database import Connection, Database, connect
from foliot.store.dispatch import LARGEST_CLAIM
from foliot.store.specs import SpecRef
from foliot.store.statements import SQL

SLACK: Final = 2_000 * UNIT


class Floor:
    """Connections and counters of one bare loop."""

    def __init__(self, dsn: str, refs: list[SpecRef], first: int) -> None:
        self._dsn = dsn
        self._refs = refs
        self._numbers = count(first)
        self.made = 0
        self.settled = 0

    async def produce(self, batch: int, end: float, most: int | None, gate: "Gate") -> None:
        connection = await connect(self._dsn, hot=True)
        statement = await connection.prepare(SQL["enqueue"])
        refs: Iterator[SpecRef] = cycle(self._refs)
        while time.monotonic() < end and (most is None or self.made < most):
            if await gate.is_shut():
                await asyncio.sleep(0.005)
                continue
            self.made += batch
            numbers = [next(self._numbers) for _ in range(batch)]
            chosen = [next(refs) for _ in range(batch)]
            await statement.fetch(
                [number << 12 for number in numbers],
                [ref.tenant for ref in chosen],
                [ref.id for ref in chosen],
                [None] * batch,
                [ref.lane for ref in chosen],
                [number * 1_000 for number in numbers],
                [None] * batch,
                [PAYLOAD] * batch,
            )

    async def consume(self, worker: int, batch: int, end: float, most: int | None) -> None:
        claims, settles = await connect(self._dsn, hot=True), await connect(self._dsn, hot=True)
        claim, settle = await claims.prepare(SQL["claim"]), await settles.prepare(SQL["settle"])
        lane, mark, held = self._refs[0].lane, 0, []
        for number in count(1):
            rows = await claim.fetch(worker, number, [lane], [mark], min(batch, LARGEST_CLAIM))
            held += rows
            if rows:
                mark = max(0, min(row["rank"] for row in rows) - SLACK)
            if held and (len(held) >= batch or not rows):
                await self._settle(settles, settle, worker, held)
                held = []
            if not held and not rows:
                if time.monotonic() > end or (most is not None and self.settled >= most):
                    return
                await asyncio.sleep(0.002)
            elif time.monotonic() > end and not held:
                return

    async def _settle(self, connection: Connection, statement: Any, worker: int, rows: list[Any]) -> None:
        now = datetime.now(UTC)
        fences = [row["fence"] for row in rows]
        await statement.fetch(
            worker,
            [row["id"] for row in rows],
            fences,
            [row["position"] for row in rows],
            [now] * len(rows),
            list(set(fences)),
        )
        await connection.fetch(SQL["forget"], worker, list(set(fences)))
        self.settled += len(rows)


class Gate:
    """Holds the producer back while too many runs wait."""

    def __init__(self, connection: Connection | None, most: int) -> None:
        self._connection = connection
        self._most = most
        self._looked = 0.0
        self._shut = False

    async def is_shut(self) -> bool:
        if self._connection is not None and time.monotonic() - self._looked > 0.05:
            self._looked = time.monotonic() + 60  # the others need not ask meanwhile
            head = "SELECT count(*) FROM (SELECT FROM ready LIMIT $1) AS head"
            self._shut = await self._connection.fetchval(head, self._most) >= self._most
            self._looked = time.monotonic()
        return self._shut


async def main(dsn: str, what: str, batch_text: str, connections_text: str, seconds_text: str, most_text: str) -> None:
    batch, connections, seconds, most = int(batch_text), int(connections_text), float(seconds_text), int(most_text)
    database = await Database.open(dsn, size=2)
    refs = await specs_of(database, "noop")
    await database.close()
    first = time.time_ns() // 1_000 % (1 << 50)
    floor = Floor(dsn, refs, first)
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    began = time.monotonic()
    end = began + seconds
    match what:
        case "enqueue":
            gate = Gate(None, 0)
            await asyncio.gather(*(floor.produce(batch, end, most or None, gate) for _ in range(connections)))
        case "sustain":
            gate = Gate(await connect(dsn), 30_000)
            await asyncio.gather(*(floor.produce(batch, end, None, gate) for _ in range(connections)))
        case "drain":
            await asyncio.gather(*(floor.consume(first + n, batch, end, most or None) for n in range(connections)))
        case _:
            raise ValueError(what)
    answer = {"made": floor.made, "settled": floor.settled, "seconds": time.monotonic() - began}
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
