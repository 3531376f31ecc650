"""Fetches work: one claimer per process, with as many runs in hand as its handlers will soon use up."""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from datetime import timedelta
from operator import attrgetter
from typing import Final

import structlog

from foliot.domain.idleness import Idleness
from foliot.domain.ids import encode
from foliot.domain.marks import Marks
from foliot.domain.outcome import Outcome
from foliot.domain.suspicion import Manner, manner
from foliot.store.dispatch import LARGEST_CLAIM, Claimed, Settlement
from foliot.store.fleet import Load
from foliot.store.specs import StoredSpec
from foliot.worker.executor import Executor, Executors
from foliot.worker.lineup import Waiting
from foliot.worker.port import Carrier
from foliot.worker.runner import Runner
from foliot.worker.secrets import Secretive, may_refer
from foliot.worker.settler import Settler
from foliot.worker.shares import Portion, Shares

LONGEST_PREFETCH: Final = 0.1
"""Seconds of work, at the present pace, that may wait in this process."""
SHORTEST_PREFETCH: Final = 0.005
CLAIMS_AHEAD: Final = 3
"""What waits here is gone in the time of so many claims: enough to keep handlers busy until the next has come, and no
more, because what another tenant hands in meanwhile comes after it."""
MOST_IN_HAND: Final = 6_000
"""With outcomes that are not on record yet; more only if so many handlers may run at once."""
PUBLISH_EVERY: Final = 0.2
LOOK_EVERY: Final = 5.0
"""Seconds between two looks for claims in our name that we know nothing of. A statement whose connection broke may
reach the database long after we have gone on; nobody else would run what it took for as long as we live."""
SHUN_FOR: Final = 30.0
"""Seconds for which a lane is left alone whose runs turned out to have no handler here: asked again at once, it would
give out the same runs again."""

_FENCE: Final = attrgetter("fence")
_SPEC: Final = attrgetter("spec")

log = structlog.get_logger("worker")


class Claimer:
    def __init__(
        self,
        carrier: Carrier,
        shares: Shares,
        executors: Executors,
        runner: Runner,
        settler: Settler,
        concurrency: int,
        alone: Executors = lambda _: None,
    ) -> None:
        self._carrier = carrier
        self._executors = executors
        self._runner = runner
        self._settler = settler
        self._concurrency = concurrency
        self._alone = alone
        self._secretive = Secretive(carrier)
        self._marks = Marks(shares.lanes)
        self._shares = shares
        self._specs: dict[int, tuple[StoredSpec, Executor | None]] = {}
        self._names: dict[int, str] = {}
        self._number = 1
        self._published = 0.0
        self._next_look = float("-inf")
        self._idleness = Idleness()
        self._pace: deque[tuple[float, int]] = deque()
        self._prefetch = LONGEST_PREFETCH
        self._paused: frozenset[int] = frozenset()
        self._recalled: frozenset[int] = frozenset()
        self._shunned: dict[int, float] = {}
        self._taken: Counter[int] = Counter()
        self._told = float("-inf")
        self._left_some = True

    async def run_once(self, patience: timedelta = timedelta()) -> int:
        """Claim one batch and start it; how many runs it brought, or made ready to be claimed.

        Where the last claim left nothing behind, this one may wait for more to come, within `patience`.
        """
        now = asyncio.get_running_loop().time()
        await self._publish(now)
        if now >= self._next_look:
            found = await self._carrier.strays(self._settler.fences)
            self._next_look = now + LOOK_EVERY
            if found:
                self._number += 1  # it may be the one whose reply was lost: it is not asked for again
                await self._start(found)
                return len(found)
        room = self._room(now)
        if room <= 0:
            return 0
        room = min(room, LARGEST_CLAIM)
        portions = self._open(now, self._shares.divide(room))
        if not portions:
            return 0
        lanes = [portion.lane for portion in portions]
        marks = self._marks.next_scan(now, lanes)
        asked = asyncio.get_running_loop().time()
        wanted, wait = [each.most for each in portions], timedelta() if self._left_some else patience
        try:
            claimed = await self._carrier.claim(self._number, lanes, marks, room, wanted, wait)
        except BaseException:
            self._next_look = float("-inf")  # it may have happened all the same
            raise
        self._number += 1
        self._left_some = len(claimed) == room
        if claimed:
            self._idleness.found(now)
            if not wait:
                self._note_duration(asyncio.get_running_loop().time() - asked)
            await self._start(claimed)
        taken = self._per_lane(claimed)
        self._shares.took(taken)
        self._taken.update(taken)
        if claimed:
            return len(claimed)
        return await self._carrier.promote() if self._idleness.is_time(now) else 0

    def _note_duration(self, seconds: float) -> None:
        wanted = min(max(CLAIMS_AHEAD * seconds, SHORTEST_PREFETCH), LONGEST_PREFETCH)
        self._prefetch += (wanted - self._prefetch) / 8

    def _room(self, now: float) -> int:
        """Free handlers, plus what the handlers finish in a short while: long work is never hoarded.

        None while more than that wait for a handler already: a claim for few costs as much as one for many. Suspects
        that wait for each other keep nobody else from being claimed, until they are too many to be in hand.
        """
        settled = self._settler.settled + self._settler.backlog
        self._pace.append((now, settled))
        while now - self._pace[0][0] > 2 * LONGEST_PREFETCH:
            self._pace.popleft()
        since, before = self._pace[0]
        soon = int((settled - before) / max(now - since, LONGEST_PREFETCH) * self._prefetch)
        queued = self._runner.going + self._runner.in_turn - self._concurrency
        apart = self._runner.waiting - self._runner.in_turn
        most = max(self._concurrency, MOST_IN_HAND) - self._settler.backlog - apart
        room = min(soon, most - self._concurrency) - queued
        return room if room >= queued else 0

    async def _start(self, claimed: list[Claimed]) -> None:
        for fence, runs in Counter(map(_FENCE, claimed)).items():
            self._settler.expect(fence, runs)
        try:
            await self._learn(claimed)
        except BaseException:
            for run in claimed:
                self._settler.add(Settlement(run, None, Outcome.released()))
            raise
        seen: defaultdict[int, list[int]] = defaultdict(list)
        batch: list[Waiting] = []
        for run in claimed:
            stored, executor = self._specs[run.spec]
            seen[stored.lane].append(run.rank)
            if executor is None or stored.lane in self._paused or run.id in self._recalled:
                self._settler.add(Settlement(run, None, Outcome.released()))
                if executor is None:
                    self._shun(stored)
                continue
            name = stored.spec.handler.label if run.job is None else self._names.get(run.job, "")
            is_secretive = may_refer(run, stored)
            suspect = run.deaths and manner(run.deaths) is Manner.ALONE
            if suspect and (alone := self._alone(stored)) is not None:
                log.warning("running alone what may kill workers", run=encode("run", run.id), deaths=run.deaths)
                self._runner.add_suspect(
                    Waiting(run, stored.spec, name, self._secretive.around(alone) if is_secretive else alone)
                )
            else:
                executor = self._secretive.around(executor) if is_secretive else executor
                batch.append(Waiting(run, stored.spec, name, executor, stored.lane))
        self._runner.add(batch)
        await asyncio.sleep(0)  # the handlers' turn: somebody waits for them, and nobody for our books
        now = asyncio.get_running_loop().time()
        for lane, ranks in seen.items():
            self._marks.saw(lane, ranks, now)

    def widen(self, lanes: Mapping[int, str]) -> bool:
        """Claim from these as well, each given with its queue; whether any of them is new."""
        if lanes.keys() <= {*self._shares.lanes}:
            return False
        self._shares.add(lanes)
        self._marks.add(lanes)
        return True

    def hold(self, lanes: frozenset[int]) -> None:
        """Start nothing of these lanes, which are paused, until told otherwise; what waits here is handed back."""
        if lanes - self._paused:
            self._runner.hand_back_waiting(lambda run: self._specs[run.spec][0].lane in lanes)
        self._paused = lanes

    def recall(self, runs: frozenset[int]) -> None:
        """Start none of these; what waits here is handed back. They may still be on their way to us."""
        self._recalled = runs
        if runs:
            self._runner.hand_back_waiting(lambda run: run.id in runs)

    def load(self) -> Load:
        """What is in hand now, and what was taken since this was last asked for."""
        now = asyncio.get_running_loop().time()
        running = Counter(self._specs[run.spec][0].lane for run in self._runner.in_hand())
        rate = {lane: count / (now - self._told) for lane, count in self._taken.items()}
        self._told, self._taken = now, Counter()
        return Load(running, rate)

    def _open(self, now: float, portions: list[Portion]) -> list[Portion]:
        """Without the lanes that are paused or shunned."""
        if not (self._paused or self._shunned):
            return portions
        self._shunned = {lane: until for lane, until in self._shunned.items() if now < until}
        return [each for each in portions if each.lane not in self._paused and each.lane not in self._shunned]

    def _shun(self, stored: StoredSpec) -> None:
        if stored.lane not in self._shunned:
            group, queue = stored.spec.handler.group, stored.spec.queue
            log.warning("no handler here for what this worker offers; handed back", handler=group, queue=queue)
        self._shunned[stored.lane] = asyncio.get_running_loop().time() + SHUN_FOR

    def _per_lane(self, claimed: list[Claimed]) -> Counter[int]:
        counts: Counter[int] = Counter()
        for spec, count in Counter(map(_SPEC, claimed)).items():
            counts[self._specs[spec][0].lane] += count
        return counts

    async def _learn(self, claimed: list[Claimed]) -> None:
        """Fetch the specs and job names that have not been met before. Specs never change; names may lag an edit."""
        # Not `- self._specs.keys()`, which walks over all that is known.
        if unknown := {run.spec for run in claimed if run.spec not in self._specs}:
            for number, stored in (await self._carrier.specs(sorted(unknown))).items():
                self._specs[number] = (stored, self._executors(stored))
        if unnamed := {run.job for run in claimed if run.job is not None and run.job not in self._names}:
            if len(self._names) > 100_000:
                self._names.clear()
            self._names.update(await self._carrier.job_names(sorted(unnamed)))

    async def _publish(self, now: float) -> None:
        if now - self._published >= PUBLISH_EVERY and (fresh := self._marks.to_publish(now)):
            self._published = now
            await self._carrier.publish(fresh)
