"""The way to work over HTTP: all that a worker needs is a URL and a key."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import aiohttp
import msgspec

from foliot.domain.errors import FenceLost
from foliot.domain.ids import decode, decode_all, encode
from foliot.domain.outcome import SUCCEEDED
from foliot.domain.seal import Voucher
from foliot.kit.settings import Access
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.fleet import UNTOLD, About, Load, Standing
from foliot.store.reports import Report
from foliot.store.specs import StoredSpec
from foliot.wire.reports import ReportAnswer, ReportBody, Wanted
from foliot.wire.work import (
    LONGEST_WAIT,
    Begun,
    ClaimAnswer,
    ClaimBody,
    Heartbeat,
    HeartbeatAnswer,
    InHand,
    Registration,
    SecretsAnswer,
    SecretsBody,
    SettleAnswer,
    SettleBody,
)
from foliot.worker.gateway.calls import BEAT_PATIENCE, PATIENCE, Calls, Unknown, open_gateway_session
from foliot.worker.gateway.columns import claimed, in_columns, in_full, key, told_of
from foliot.worker.gateway.together import Together

__all__ = ["HttpCarrier", "open_gateway_session"]

_REPORTS_AT_ONCE: Final = 100
"""Each may be of a quarter of a megabyte."""


class HttpCarrier:
    """Implements `port.Carrier` for a worker that reaches the API alone. Cheap: many may share one session."""

    def __init__(
        self, session: aiohttp.ClientSession, access: Access, worker: int, name: str, about: About = UNTOLD
    ) -> None:
        self._post = Calls(session, access).post
        self._together = Together(self._post)
        self._number = worker
        self._worker = encode("wrk", worker)
        self.voucher: Voucher | None = None
        self._name = name
        self._about = about
        self._lanes: list[int] = []
        self._has_labels = False
        self._paused: frozenset[int] = frozenset()
        self._is_hurried = False
        self._is_astray = False
        self._news: Callable[[], None] = lambda: None
        self._line: asyncio.Timeout | None = None
        self._hang_ups = 0
        self._specs: dict[int, StoredSpec] = {}
        self._names: dict[int, str] = {}
        self._left: Counter[int] = Counter()
        self._forgotten: set[int] = set()

    async def register(
        self, queues: Sequence[str], groups: Sequence[str], labels: Sequence[str] = ()
    ) -> dict[int, str]:
        told = Registration(self._name, list(queues), list(groups), *self._about, labels=list(labels))
        answer = await self._post("heartbeat", Heartbeat(self._worker, register=told), HeartbeatAnswer)
        lanes = _by_lane(answer)
        self._lanes = list(lanes)
        self._has_labels = bool(labels)
        self.voucher = Voucher(self._number, answer.voucher)
        return lanes

    async def claim(
        self,
        number: int,
        lanes: Sequence[int],
        marks: Sequence[int],  # noqa: ARG002 - the gateway keeps its own
        most: int,
        portions: Sequence[int],
        patience: timedelta = timedelta(),  # noqa: ARG002 - it costs nothing to wait there for as long as it takes
    ) -> list[Claimed]:
        wait = 0.0 if self._is_hurried else LONGEST_WAIT
        body = ClaimBody(self._worker, number, list(lanes), [min(each, most) for each in portions], most, wait)
        hang_ups = self._hang_ups
        try:
            answer = await self._together.claim(body)
            if (answer is None or not answer.runs.fence) and hang_ups == self._hang_ups:
                answer = await self._wait(body)
        except BaseException:
            self._is_astray = True  # it may have happened all the same
            raise
        if answer is None:
            return []
        if answer.news:
            self._news()
        return self._took(answer)

    async def _wait(self, body: ClaimBody) -> ClaimAnswer | None:
        """None if we hung up: what the gateway takes for us from then on it hands back."""
        try:
            async with asyncio.timeout(None) as self._line:
                return await self._post("claim", body, ClaimAnswer, body.wait + PATIENCE)
        except TimeoutError:
            self._is_astray = True  # the answer may have been here already, unread
            return None
        finally:
            self._line = None

    def _hang_up(self) -> None:
        """Have a claim that waits, or is about to, come back at once."""
        self._hang_ups += 1
        line, self._line = self._line, None
        if line is not None:
            line.reschedule(asyncio.get_running_loop().time())

    async def strays(self, known: Sequence[int]) -> list[Claimed]:
        """Asked for only if there may be some: a claim went wrong, or a heartbeat heard of them."""
        if not self._is_astray:
            return []
        answer = await self._post("claim", ClaimBody(self._worker, known=list(known)), ClaimAnswer)
        self._is_astray = False
        return self._took(answer)

    async def specs(self, ids: Sequence[int]) -> dict[int, StoredSpec]:
        return {number: self._specs[number] for number in ids}

    async def job_names(self, jobs: Sequence[int]) -> dict[int, str]:
        return {job: self._names[job] for job in jobs if job in self._names}

    async def settle(self, batch: Sequence[Settlement]) -> list[Settlement]:
        counts = Counter(each.run.fence for each in batch)
        over = [fence for fence, count in counts.items() if self._left[fence] == count]
        successes = [each for each in batch if each.outcome == SUCCEEDED]
        others = [in_full(each) for each in batch if each.outcome != SUCCEEDED]
        body = SettleBody(self._worker, in_columns(successes), others, forget=over)
        answer = await self._together.settle(body)
        lost = {*map(key, answer.lost)}
        if answer.uncovered:
            lost |= await self._doubt(successes, {*map(key, answer.uncovered)})
        self._left -= counts
        self._forgotten.update(over)
        return [each for each in batch if (each.run.id, each.run.fence) in lost] if lost else []

    async def _doubt(self, successes: Iterable[Settlement], uncovered: set[tuple[int, int]]) -> set[tuple[int, int]]:
        """Which of these are lost? Others are on record from an earlier try, whose answer did not reach us."""
        doubted = [in_full(each) for each in successes if (each.run.id, each.run.fence) in uncovered]
        answer = await self._post("settle", SettleBody(self._worker, doubted=doubted), SettleAnswer)
        return {*map(key, answer.lost)}

    async def note_started(self, begun: Sequence[tuple[Claimed, datetime]]) -> set[tuple[int, int]]:
        started = Begun(
            [encode("run", run.id) for run, _ in begun], [run.fence for run, _ in begun], [at for _, at in begun]
        )
        answer = await self._beat(Heartbeat(self._worker, started=started))
        return {(run.id, run.fence) for run, _ in begun} - {*map(key, answer.lost)}

    async def report(self, reports: Sequence[Report]) -> set[tuple[int, int]]:
        lost: set[tuple[int, int]] = set()
        for first in range(0, len(reports), _REPORTS_AT_ONCE):
            told = [told_of(each) for each in reports[first : first + _REPORTS_AT_ONCE]]
            answer = await self._post("report", ReportBody(self._worker, told), ReportAnswer)
            lost |= {*map(key, answer.lost)}
        return {(each.run, each.fence) for each in reports} - lost

    async def last_checkpoint(self, run: Claimed) -> bytes | None:
        wanted = Wanted(encode("run", run.id), run.fence)
        answer = await self._post("report", ReportBody(self._worker, wanted=wanted), ReportAnswer)
        return None if answer.checkpoint is msgspec.UNSET else bytes(answer.checkpoint)

    async def secrets(self, run: Claimed, names: Sequence[str]) -> dict[str, str]:
        body = SecretsBody(self._worker, encode("run", run.id), run.fence, list(names))
        answer = await self._post("secrets", body, SecretsAnswer)
        if not answer.held:
            raise FenceLost("the attempt counts no more", "another one may have the run")
        return answer.values

    async def forget(self, fences: Sequence[int]) -> None:
        """Most went with the settlement of their last runs."""
        left = [fence for fence in fences if fence not in self._forgotten]
        if left:
            await self._post("settle", SettleBody(self._worker, forget=left), SettleAnswer)
        self._forgotten.difference_update(fences)

    async def publish(self, highest: dict[int, int]) -> None:
        """The gateway does, which sees the ranks."""

    async def promote(self) -> int:
        """The gateway does, while workers wait there and it finds nothing for them."""
        return 0

    async def beat(self, load: Load) -> Standing | None:
        running, rate = load
        told = InHand([running.get(lane, 0) for lane in self._lanes], [rate.get(lane, 0.0) for lane in self._lanes])
        try:
            answer = await self._beat(Heartbeat(self._worker, load=told, known=[*self._left], wider=self._has_labels))
        except Unknown:
            return None
        self._is_astray |= answer.astray
        paused, lanes = frozenset(answer.paused), _by_lane(answer)
        if paused != self._paused or len(lanes) > len(self._lanes):
            self._paused = paused
            self._lanes = list(lanes) or self._lanes
            self._hang_up()  # a claim that waits asks for the lanes that were there and open when it began
        if not answer.alive:
            return None
        stop, recalled = (frozenset(decode_all("run", told)) for told in (answer.stop, answer.recalled))
        return Standing(answer.draining, paused, answer.astray, stop, recalled, lanes)

    async def listen(self, wake: Callable[[], None], news: Callable[[], None]) -> None:  # noqa: ARG002
        """Claims wait at the gateway, which listens: for work, and for news."""
        self._news = news

    def hurry(self) -> None:
        self._is_hurried = True
        self._hang_up()

    async def leave(self) -> None:
        with suppress(Unknown):
            await self._beat(Heartbeat(self._worker, leaving=True))

    async def close(self) -> None:
        """The session belongs to whoever opened it."""

    async def _beat(self, body: Heartbeat) -> HeartbeatAnswer:
        return await self._post("heartbeat", body, HeartbeatAnswer, BEAT_PATIENCE)

    def _took(self, answer: ClaimAnswer) -> list[Claimed]:
        runs = answer.runs
        # What an answer tells is asked for right after it, and no later.
        self._specs = {
            told.spec: StoredSpec.read(told.lane, bytes(told.body), told.tenant, told.signing) for told in answer.specs
        }
        self._names = {decode("job", job): name for job, name in answer.names.items()}
        for fence, count in Counter(runs.fence).items():
            self._left[fence] = count
        return list(claimed(runs))


def _by_lane(answer: HeartbeatAnswer) -> dict[int, str]:
    return {told.lane: told.queue for told in answer.lanes}
