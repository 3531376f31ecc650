"""Heartbeats of remote workers: leases are renewed, and runs noted that have begun, for many of them at once."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final

from foliot.domain.errors import InvalidField
from foliot.domain.ids import decode, encode
from foliot.kit.joined import Joined
from foliot.kit.tasks import background
from foliot.services.gateway.apart import together_or_apart
from foliot.services.gateway.settlements import check_instants
from foliot.store import fleet
from foliot.store.database import Line
from foliot.store.fleet import Standing
from foliot.store.gateway import Beat, Begun, beat_for_many, note_started_for_many
from foliot.wire.work import Heartbeat, RunRef, same_length

MOST_STARTED: Final = 4_000
"""Runs of which one statement notes that they have begun."""


class Leases:
    """Leases have a line of their own, on which no run is ever locked; what has begun is noted on another."""

    def __init__(self, line: Line, noting: Line) -> None:
        self._line = line
        self._noting = noting
        self._beats = Joined(self._beat, most=1_000)
        self._starts = Joined(partial(together_or_apart, self._note_started), size=len, most=MOST_STARTED)

    async def run(self) -> None:
        """Write down what is told, until cancelled."""
        async with background(self._starts.run()):
            await self._beats.run()

    async def note_started(self, worker: int, body: Heartbeat) -> list[RunRef]:
        """Note what has begun; which of it the worker holds no more."""
        begun = _begun(worker, body)
        return await self._starts(begun) if begun else []

    async def renew(self, worker: int, body: Heartbeat) -> Standing | None:
        """How the worker stands; none if it is dead."""
        return await self._beats(_in_hand(worker, body))

    async def end(self, worker: int) -> None:
        await fleet.leave(self._line, worker)

    async def _beat(self, beats: Sequence[Beat]) -> list[Standing | None]:
        """How each stands; none for those that are dead."""
        latest: dict[int, Beat] = {}
        for beat in beats:
            if beat.running or beat.known or beat.worker not in latest:
                latest[beat.worker] = beat
        alive = await beat_for_many(self._line, list(latest.values()))
        return [alive.get(beat.worker) for beat in beats]

    async def _note_started(self, calls: Sequence[list[Begun]]) -> list[list[RunRef]]:
        """For each call which of its runs are held no more."""
        held = await note_started_for_many(self._noting, chain.from_iterable(calls))
        return [_not_among(held, begun) for begun in calls]


def _in_hand(worker: int, body: Heartbeat) -> Beat:
    known = body.known or ()
    if body.load is None:
        return Beat(worker, known=known)
    if not same_length(body.load, "running", "rate"):
        raise InvalidField("load", "its columns differ in length", "one entry for each lane in both")
    return Beat(worker, body.load.running, body.load.rate, known)


def _begun(worker: int, body: Heartbeat) -> list[Begun]:
    if body.started is None:
        return []
    if not same_length(body.started, "run_id", "fence", "started_at"):
        raise InvalidField("started", "its columns differ in length", "one entry for each run in every column")
    check_instants(body.started.started_at, "started")
    rows = zip(body.started.run_id, body.started.fence, body.started.started_at, strict=True)
    return [Begun(worker, decode("run", run), fence, at) for run, fence, at in rows]


def _not_among(held: set[tuple[int, int]], begun: list[Begun]) -> list[RunRef]:
    return [RunRef(encode("run", each.run), each.fence) for each in begun if (each.run, each.fence) not in held]
