"""Who may ask for what: a worker belongs to the key that registered it, and a key serves queues."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from foliot.domain.errors import Forbidden, InvalidField, NotFound
from foliot.domain.ids import decode
from foliot.domain.labels import labels_of
from foliot.domain.sharing import may_serve
from foliot.kit.joined import Joined
from foliot.store.database import Database, Line
from foliot.store.fleet import MOST_LANES, About, widen
from foliot.store.gateway import NOBODY, Arrival, introduce, keys_of, queues_of
from foliot.store.specs import ensure_lanes
from foliot.wire.work import Registration, ToldLane

MOST_REMEMBERED: Final = 100_000


async def _is_good() -> bool:
    return True


class Bearer(NamedTuple):
    """Who calls: the id of the key, and the queues that it serves."""

    key: str
    serves: Sequence[str]
    is_good: Callable[[], Awaitable[bool]] = _is_good
    """Whether the key still opens doors: asked again when a call has waited."""


class Membership:
    """Remembers whose a worker is and which queue a lane belongs to: neither ever changes."""

    def __init__(self, database: Database, line: Line) -> None:
        self._database = database
        self._line = line
        self._arrivals = Joined(self._introduce, most=1_000)
        self._keys: dict[int, str] = {}
        self._queues: dict[int, str] = {}
        self._lanes: dict[tuple[tuple[str, ...], ...], list[ToldLane]] = {}

    async def run(self) -> None:
        """Write down who arrives, until cancelled."""
        await self._arrivals.run()

    async def register(self, bearer: Bearer, worker: int, told: Registration) -> list[ToldLane]:
        """Make a worker known as this key's; the lanes that it may claim."""
        for queue in told.queues:
            _check_queue(bearer, queue)
        labels = labels_of(told.labels, "register.labels")
        if len(told.queues) * len(told.groups) * (2 if labels else 1) > MOST_LANES:
            raise InvalidField("register.groups", f"more than {MOST_LANES:,} lanes", "serve fewer queues or handlers")
        offer = (tuple(told.queues), tuple(told.groups), labels)
        if offer not in self._lanes:  # a fleet offers the same on all its machines
            found = await ensure_lanes(self._line, told.queues, told.groups, labels)
            _forget_if_many(self._lanes)
            self._lanes[offer] = [ToldLane(lane, queue) for lane, queue in sorted(found.items())]
        lanes = self._lanes[offer]
        about = About(told.host, told.pid, told.version, told.app, told.concurrency)
        await self._arrivals(Arrival(worker, told.name, bearer.key, about, [each.lane for each in lanes]))
        await self.check_owner(bearer, worker)
        return await self.wider(worker) if labels else lanes

    async def wider(self, worker: int) -> list[ToldLane]:
        """All lanes that a worker with labels may claim by now, of the queues that it was registered for."""
        return [ToldLane(lane, queue) for lane, queue in (await widen(self._line, worker)).items()]

    async def check_owner(self, bearer: Bearer, worker: int) -> None:
        """NotFound unless this key registered the worker."""
        if worker not in self._keys:
            _forget_if_many(self._keys)
            self._keys |= await keys_of(self._line, [worker])
        if self._keys.get(worker) != bearer.key:
            raise _no_such_worker()

    async def check_lanes(self, bearer: Bearer, lanes: Sequence[int]) -> None:
        """Forbidden unless this key serves the queues of all these lanes."""
        if unknown := {lane for lane in lanes if lane not in self._queues}:
            self._queues |= await queues_of(self._database, sorted(unknown))
        for lane in lanes:
            if lane not in self._queues:
                raise InvalidField("lanes", f"there is no lane {lane}", "claim those that the registration answered")
            _check_queue(bearer, self._queues[lane])

    async def _introduce(self, arrivals: Sequence[Arrival]) -> list[None]:
        await introduce(self._line, arrivals)
        _forget_if_many(self._keys)
        self._keys |= await keys_of(self._line, [arrival.worker for arrival in arrivals])
        return [None] * len(arrivals)


def worker_number(text: str) -> int:
    """The worker of this id; a malformed one is as unknown as any other.

    So is nobody: who came in that name would be told of every claim that was given up, and keep it from the reaper.
    """
    try:
        number = decode("wrk", text)
    except InvalidField:
        raise _no_such_worker() from None
    if number == NOBODY:
        raise _no_such_worker()
    return number


def _no_such_worker() -> NotFound:
    return NotFound("there is no such worker", "register it first, with this key")


def _check_queue(bearer: Bearer, queue: str) -> None:
    if not may_serve(bearer.serves, queue):
        hint = "the operator makes one that does: `foliot key create TENANT --serve QUEUE`"
        raise Forbidden(f"this key does not serve the queue {queue[:200]!r}", hint)


def _forget_if_many(known: dict[Any, Any]) -> None:
    if len(known) > MOST_REMEMBERED:
        known.clear()
