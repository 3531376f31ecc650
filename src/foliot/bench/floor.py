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

from foliot.bench.produce import MOST_WAITING, PAYLOAD, specs_of
from foliot.bench.together import READY
from foliot.domain.fairness import UNIT
from foliot.store.database import Connection, Database, connect
from foliot.store.dispatch import LARGEST_CLAIM
from foliot.store.specs import SpecRef
from foliot.store.statements import SQL

SLACK: Final = 2_000 * UNIT


class Hand:
    """One connection with a statement prepared on it."""

    def __init__(self, connection: Connection, statement: Any) -> None:
        self.connection = connection
        self.fetch = statement.fetch

    @classmethod
    async def made(cls, dsn: str, name: str) -> "Hand":
        connection = await connect(dsn, hot=True)
        return cls(connection, await connection.prepare(SQL[name]))


class Floor:
    """The counters of one bare loop, and until when it goes on: to the end of its time, or of its runs."""

    def __init__(self, refs: list[SpecRef], first: int, seconds: float, most: int | None) -> None:
        self._refs = refs
        self._numbers = count(first)
        self._most = most
        self._began = self._last = time.monotonic()
        self._end = self._began + seconds
        self._longest_pause = 0.0
        self._made = 0
        self._settled = 0

    async def produce(self, hand: Hand, batch: int, gate: "Gate") -> None:
        refs: Iterator[SpecRef] = cycle(self._refs)
        while time.monotonic() < self._end and (self._most is None or self._made < self._most):
            if await gate.is_shut():
                await asyncio.sleep(0.005)
                continue
            self._made += batch
            numbers = [next(self._numbers) for _ in range(batch)]
            chosen = [next(refs) for _ in range(batch)]
            await hand.fetch(
                [number << 12 for number in numbers],
                [ref.tenant for ref in chosen],
                [ref.id for ref in chosen],
                [None] * batch,
                [ref.lane for ref in chosen],
                [number * 1_000 for number in numbers],
                [None] * batch,
                [PAYLOAD] * batch,
            )
            self._note_progress()

    async def consume(self, claims: Hand, settles: Hand, worker: int, batch: int) -> None:
        lane, mark, held = self._refs[0].lane, 0, []
        for number in count(1):
            rows = await claims.fetch(worker, number, [lane], [mark], min(batch, LARGEST_CLAIM), [LARGEST_CLAIM])
            held += rows
            if rows:
                mark = max(0, min(row["rank"] for row in rows) - SLACK)
            if held and (len(held) >= batch or not rows):
                await self._settle(settles, worker, held)
                held = []
            if not held and not rows:
                if time.monotonic() > self._end or (self._most is not None and self._settled >= self._most):
                    return
                await asyncio.sleep(0.002)
            elif time.monotonic() > self._end and not held:
                return

    async def _settle(self, hand: Hand, worker: int, rows: list[Any]) -> None:
        now = datetime.now(UTC)
        fences = [row["fence"] for row in rows]
        await hand.fetch(
            worker,
            [row["id"] for row in rows],
            fences,
            [row["position"] for row in rows],
            [now] * len(rows),
            list(set(fences)),
            False,  # nobody is tied here
        )
        await hand.connection.fetch(SQL["forget"], worker, list(set(fences)))
        self._settled += len(rows)
        self._note_progress()

    def _note_progress(self) -> None:
        now = time.monotonic()
        self._longest_pause = max(self._longest_pause, now - self._last)
        self._last = now

    def answer(self) -> dict[str, float]:
        """A rate with a long pause in it is that of a machine that stood still, not of these statements."""
        seconds = time.monotonic() - self._began
        return {"made": self._made, "settled": self._settled, "seconds": seconds, "longestPause": self._longest_pause}


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
    names = {"enqueue": ("enqueue",), "sustain": ("enqueue",), "drain": ("claim", "settle")}[what]
    hands = [[await Hand.made(dsn, name) for name in names] for _ in range(connections)]
    gate = Gate(await connect(dsn) if what == "sustain" else None, MOST_WAITING)
    first = time.time_ns() // 1_000 % (1 << 50)
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    if not _told_to_go():
        return
    floor = Floor(refs, first, seconds, most or None)
    if what == "drain":
        pairs = enumerate(hands, first)
        await asyncio.gather(*(floor.consume(claims, settles, worker, batch) for worker, (claims, settles) in pairs))
    else:
        await asyncio.gather(*(floor.produce(hand, batch, gate) for (hand,) in hands))
    sys.stdout.write(msgspec.json.encode(floor.answer()).decode() + "\n")


def _told_to_go() -> bool:
    """Say that all is prepared, and wait; False if whoever started this has gone."""
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    return bool(sys.stdin.readline())


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
