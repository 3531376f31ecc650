"""Work for workers that have only a URL and a key: what many of them ask is done for all of them at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from foliot.domain.errors import Conflict, Forbidden, InvalidField, NotFound, Unavailable
from foliot.domain.ids import decode, encode
from foliot.domain.outcome import Outcome
from foliot.domain.sharing import may_serve
from foliot.kit.clock import Steady, steady
from foliot.kit.joined import Joined
from foliot.kit.signals import READY
from foliot.kit.tasks import background
from foliot.services.gateway.apart import together_or_apart
from foliot.services.gateway.claims import Claims
from foliot.services.gateway.settlements import Settlements, check_instants, settling_of
from foliot.services.gateway.telling import NOTHING, Teller
from foliot.store import fleet
from foliot.store.database import Database, Row
from foliot.store.dispatch import Claimed, Settlement, conclude, forget
from foliot.store.fleet import About, Standing
from foliot.store.gateway import (
    NOBODY,
    Arrival,
    Beat,
    Begun,
    Want,
    beat_for_many,
    disown,
    fetch_again,
    introduce,
    keys_of,
    note_started_for_many,
    queues_of,
    strays_for_many,
)
from foliot.store.recovery import is_contended, is_gone
from foliot.store.specs import ensure_lanes
from foliot.wire.work import (
    ClaimAnswer,
    ClaimBody,
    Heartbeat,
    HeartbeatAnswer,
    Registration,
    RunRef,
    SettleAnswer,
    SettleBody,
    ToldLane,
    same_length,
)

MOST_LANES: Final = 1_000
MOST_REMEMBERED: Final = 100_000
MOST_STARTED: Final = 4_000
"""Runs of which one statement notes that they have begun."""


class Bearer(NamedTuple):
    """Who calls: the id of the key, and the queues that it serves."""

    key: str
    serves: Sequence[str]


class _Known(NamedTuple):
    worker: int
    fences: list[int]


class Gateway:
    """Three connections, however many workers there are. What it remembers of them, any other gateway can find out."""

    def __init__(self, database: Database, hint: Callable[[str], None], clock: Steady = steady) -> None:
        self._database = database
        self._hint = hint
        self._claim_line = database.line()
        # As workers do that speak to the database themselves: what sits behind somebody's lock is said again later.
        self._settle_line = database.line(statement_timeout="10s", lock_timeout="200ms")
        self._lease_line = database.line(statement_timeout="5s")
        self._teller = Teller(self._claim_line, clock)
        self._claims = Claims(self._claim_line, self._teller.learn, clock)
        self._settlements = Settlements(self._settle_line)
        self._beats = Joined(self._beat, most=1_000)
        self._starts = Joined(partial(together_or_apart, self._note_started), size=len, most=MOST_STARTED)
        self._strays = Joined(self._find_strays, most=100)
        self._arrivals = Joined(self._introduce, most=1_000)
        self._keys: dict[int, str] = {}
        self._queues: dict[int, str] = {}
        self._lanes: dict[tuple[tuple[str, ...], tuple[str, ...]], list[ToldLane]] = {}

    async def run(self) -> None:
        """Serve until cancelled. One task of this must run for calls to be answered."""
        joined = (self._settlements, self._beats, self._starts, self._strays, self._arrivals)
        try:
            async with background(*(each.run() for each in joined)):
                await self._claims.run()
        finally:
            for line in (self._claim_line, self._settle_line, self._lease_line):
                await line.close()

    def wake(self) -> None:
        """There may be work."""
        self._claims.wake()

    def dismiss(self) -> None:
        """Let nobody wait any longer: this process is about to end."""
        self._claims.dismiss()

    async def heartbeat(self, bearer: Bearer, body: Heartbeat) -> HeartbeatAnswer:
        with _reaching():
            lanes: list[ToldLane] = []
            worker = worker_number(body.worker)
            if body.register is not None:
                lanes = await self._register(bearer, worker, body.register)
            await self._check_owner(bearer, worker)
            begun = _begun(worker, body)
            lost = await self._starts(begun) if begun else []
            standing = await self._beats(_beat(worker, body))
            if body.leaving:
                await fleet.leave(self._lease_line, worker)
                standing = None
            if standing is None:
                return HeartbeatAnswer(alive=False, lanes=lanes, lost=lost)
            return HeartbeatAnswer(True, lanes, lost, standing.draining, sorted(standing.paused))

    async def claim(self, bearer: Bearer, body: ClaimBody, gone: Callable[[], Awaitable[None]]) -> ClaimAnswer:
        """Wait for work; `gone` returns when the worker has hung up. What it cannot be told of is handed back."""
        with _reaching():
            worker = worker_number(body.worker)
            await self._check_owner(bearer, worker)
            if body.known is not None:
                return self._teller.tell(await self._strays(_Known(worker, body.known)))
            await self._check_lanes(bearer, body.lanes)
            if not body.most or not body.lanes:
                return NOTHING
            rows = await self._wait(Want(worker, body.number, body.most), body, gone)
            return self._teller.tell(rows)

    async def settle(self, bearer: Bearer, body: SettleBody) -> SettleAnswer:
        with _reaching():
            worker = worker_number(body.worker)
            await self._check_owner(bearer, worker)
            return await self._settlements.settle(settling_of(worker, body))

    async def _register(self, bearer: Bearer, worker: int, told: Registration) -> list[ToldLane]:
        for queue in told.queues:
            _check_queue(bearer, queue)
        if len(told.queues) * len(told.groups) > MOST_LANES:
            raise InvalidField("register.groups", f"more than {MOST_LANES:,} lanes", "serve fewer queues or handlers")
        offer = (tuple(told.queues), tuple(told.groups))
        if offer not in self._lanes:  # a fleet offers the same on all its machines
            found = await ensure_lanes(self._lease_line, told.queues, told.groups)
            _forget_if_many(self._lanes)
            self._lanes[offer] = [ToldLane(lane, queue) for lane, queue in sorted(found.items())]
        lanes = self._lanes[offer]
        about = About(told.host, told.pid, told.version, told.app, told.concurrency)
        await self._arrivals(Arrival(worker, told.name, bearer.key, about, [each.lane for each in lanes]))
        await self._check_owner(bearer, worker)
        return lanes

    async def _introduce(self, arrivals: Sequence[Arrival]) -> list[None]:
        await introduce(self._lease_line, arrivals)
        _forget_if_many(self._keys)
        self._keys |= await keys_of(self._lease_line, [arrival.worker for arrival in arrivals])
        return [None] * len(arrivals)

    async def _check_owner(self, bearer: Bearer, worker: int) -> None:
        if worker not in self._keys:
            _forget_if_many(self._keys)
            self._keys |= await keys_of(self._lease_line, [worker])
        if self._keys.get(worker) != bearer.key:
            raise _no_such_worker()

    async def _check_lanes(self, bearer: Bearer, lanes: list[int]) -> None:
        if unknown := {lane for lane in lanes if lane not in self._queues}:
            self._queues |= await queues_of(self._database, sorted(unknown))
        for lane in lanes:
            if lane not in self._queues:
                raise InvalidField("lanes", f"there is no lane {lane}", "claim those that the registration answered")
            _check_queue(bearer, self._queues[lane])

    async def _wait(self, want: Want, body: ClaimBody, gone: Callable[[], Awaitable[None]]) -> list[Row]:
        if self._claims.has_answered(want):
            again = await fetch_again(self._claim_line, want.worker, want.number)
            await self._teller.learn(again)
            return again
        poll = self._claims.ask(want, _portions(body))
        hung_up = asyncio.ensure_future(gone())
        try:
            await _first_of(poll.done, hung_up, within=body.wait)
            await _first_of(poll.done, poll.tried, hung_up)
            if not poll.done.done() and self._claims.withdraw(poll):
                return []
            rows = await poll.done
            if rows and hung_up.done():
                await self._hand_back(rows)
                return []
            return rows
        finally:
            self._claims.withdraw(poll)
            hung_up.cancel()

    async def _hand_back(self, rows: list[Row]) -> None:
        first = rows[0]
        if await disown(self._claim_line, first["worker"], first["fence"], first["claimed_at"]):
            # Not by a reap, which takes it that a worker died with them in its hands.
            runs = [Claimed(*tuple(row)[2:]) for row in rows]
            await conclude(self._settle_line, NOBODY, [Settlement(run, None, Outcome.released()) for run in runs])
            await forget(self._settle_line, NOBODY, [first["fence"]])
            self._hint(READY)

    async def _beat(self, beats: Sequence[Beat]) -> list[Standing | None]:
        """How each stands; none for those that are dead."""
        latest: dict[int, Beat] = {}
        for beat in beats:
            if beat.running or beat.worker not in latest:
                latest[beat.worker] = beat
        alive = await beat_for_many(self._lease_line, list(latest.values()))
        return [alive.get(beat.worker) for beat in beats]

    async def _note_started(self, calls: Sequence[list[Begun]]) -> list[list[RunRef]]:
        """For each call which of its runs are held no more. Not on the line of the leases: a run may be locked."""
        held = await note_started_for_many(self._settle_line, chain.from_iterable(calls))
        return [_not_among(held, begun) for begun in calls]

    async def _find_strays(self, asked: Sequence[_Known]) -> list[list[Row]]:
        known: dict[int, list[int]] = {}
        for each in asked:
            known.setdefault(each.worker, []).extend(each.fences)
        rows = await strays_for_many(self._claim_line, known)
        await self._teller.learn(rows)
        return [[row for row in rows if row["worker"] == each.worker] for each in asked]


async def _first_of(*futures: "asyncio.Future[Any]", within: float | None = None) -> None:
    await asyncio.wait(futures, timeout=within, return_when=asyncio.FIRST_COMPLETED)


def _forget_if_many(known: dict[Any, Any]) -> None:
    if len(known) > MOST_REMEMBERED:
        known.clear()


def worker_number(text: str) -> int:
    """The worker of this id; a malformed one is as unknown as any other."""
    try:
        return decode("wrk", text)
    except InvalidField:
        raise _no_such_worker() from None


def _no_such_worker() -> NotFound:
    return NotFound("there is no such worker", "register it first, with this key")


def _check_queue(bearer: Bearer, queue: str) -> None:
    if not may_serve(bearer.serves, queue):
        hint = "the operator makes one that does: `foliot key create TENANT --serve QUEUE`"
        raise Forbidden(f"this key does not serve the queue {queue[:200]!r}", hint)


def _portions(body: ClaimBody) -> dict[int, int]:
    if body.portions and not same_length(body, "lanes", "portions"):
        raise InvalidField("portions", "are not as many as lanes", "one for each lane, or none at all")
    return dict(zip(body.lanes, body.portions or [body.most] * len(body.lanes), strict=True))


def _beat(worker: int, body: Heartbeat) -> Beat:
    if body.load is None:
        return Beat(worker)
    if not same_length(body.load, "running", "rate"):
        raise InvalidField("load", "its columns differ in length", "one entry for each lane in both")
    return Beat(worker, body.load.running, body.load.rate)


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


@contextmanager
def _reaching() -> Iterator[None]:
    """A database that is away, or others in the way: something to try again, which every call of the gateway bears."""
    try:
        yield
    except Exception as error:
        if is_contended(error):
            raise Conflict("others hold what this is about", "try again in a moment, with less at once") from error
        if not is_gone(error):
            raise
        raise Unavailable("the database cannot be reached", "try again in a few seconds") from error
