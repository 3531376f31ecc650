"""The way to work over HTTP: all that a worker needs is a URL and a key."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
from yarl import URL

from foliot.domain.errors import FoliotError
from foliot.domain.ids import decode, encode
from foliot.domain.outcome import SUCCEEDED
from foliot.domain.spec import Spec
from foliot.kit.settings import Access
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.fleet import UNTOLD, About, Load, Standing
from foliot.store.recovery import Contended, OutOfReach, Refused
from foliot.store.specs import StoredSpec
from foliot.wire.views import Problem
from foliot.wire.work import (
    LONGEST_WAIT,
    Begun,
    ClaimAnswer,
    ClaimBody,
    Ended,
    Heartbeat,
    HeartbeatAnswer,
    InHand,
    Registration,
    RunColumns,
    RunRef,
    SettleAnswer,
    SettleBody,
    Succeeded,
)

_PATIENCE: Final = 10.0
"""Seconds for an answer, besides what a claim waits by itself."""
_BEAT_PATIENCE: Final = 5.0
"""A third of the lease: one that does not answer leaves time for another try."""
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of a gateway, or of a proxy before it, that may be another one soon."""

_UNFIT: Final = frozenset({400, 413, 422})

_Answer = TypeVar("_Answer")


def open_gateway_session() -> aiohttp.ClientSession:
    """A session for any number of workers: each uses up to three connections at once."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=10, keepalive_timeout=30),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


class Unknown(Refused):
    """The gateway knows no worker of ours by that id."""


class NotTaken(FoliotError):  # noqa: N818 - reads aloud
    """The gateway knows us, but cannot take what we say."""


class HttpCarrier:
    """Implements `port.Carrier` for a worker that reaches the API alone. Cheap: many may share one session."""

    def __init__(
        self, session: aiohttp.ClientSession, access: Access, worker: int, name: str, about: About = UNTOLD
    ) -> None:
        self._session = session
        self._url = access.url
        self._paths = {name: URL(f"{access.url}/v1/work/{name}") for name in ("claim", "heartbeat", "settle")}
        self._headers = {"Authorization": f"Bearer {access.key}", "Content-Type": "application/json"}
        self._worker = encode("wrk", worker)
        self._name = name
        self._about = about
        self._lanes: list[int] = []
        self._paused: frozenset[int] = frozenset()
        self._is_hurried = False
        self._hang_up = asyncio.Event()
        self._specs: dict[int, StoredSpec] = {}
        self._names: dict[int, str] = {}
        self._left: Counter[int] = Counter()
        self._forgotten: set[int] = set()

    async def register(self, queues: Sequence[str], groups: Sequence[str]) -> dict[int, str]:
        told = Registration(self._name, list(queues), list(groups), *self._about)
        answer = await self._post("heartbeat", Heartbeat(self._worker, register=told), HeartbeatAnswer)
        lanes = {told.lane: told.queue for told in answer.lanes}
        self._lanes = list(lanes)
        return lanes

    async def claim(
        self,
        number: int,
        lanes: Sequence[int],
        marks: Sequence[int],  # noqa: ARG002 - the gateway keeps its own
        most: int,
        portions: Sequence[int],
    ) -> list[Claimed]:
        wait = 0.0 if self._is_hurried else LONGEST_WAIT
        self._hang_up.clear()
        body = ClaimBody(self._worker, number, list(lanes), [min(each, most) for each in portions], most, wait)
        asking = asyncio.ensure_future(self._post("claim", body, ClaimAnswer, wait + _PATIENCE))
        hanging_up = asyncio.ensure_future(self._hang_up.wait())
        try:
            if wait:
                await asyncio.wait([asking, hanging_up], return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    return []  # hung up: what the gateway takes for us from now on it hands back
            return self._took(await asking)
        finally:
            for task in (asking, hanging_up):
                task.cancel()
            await asyncio.gather(asking, hanging_up, return_exceptions=True)

    async def strays(self, known: Sequence[int]) -> list[Claimed]:
        body = ClaimBody(self._worker, known=list(known))
        return self._took(await self._post("claim", body, ClaimAnswer))

    async def specs(self, ids: Sequence[int]) -> dict[int, StoredSpec]:
        return {number: self._specs[number] for number in ids}

    async def job_names(self, jobs: Sequence[int]) -> dict[int, str]:
        return {job: self._names[job] for job in jobs if job in self._names}

    async def settle(self, batch: Sequence[Settlement]) -> list[Settlement]:
        counts = Counter(each.run.fence for each in batch)
        over = [fence for fence, count in counts.items() if self._left[fence] == count]
        successes = [each for each in batch if each.outcome == SUCCEEDED]
        others = [_in_full(each) for each in batch if each.outcome != SUCCEEDED]
        body = SettleBody(self._worker, _in_columns(successes), others, forget=over)
        answer = await self._post("settle", body, SettleAnswer)
        lost = {*map(_key, answer.lost)}
        if answer.uncovered:
            lost |= await self._doubt(successes, {*map(_key, answer.uncovered)})
        self._left -= counts
        self._forgotten.update(over)
        return [each for each in batch if (each.run.id, each.run.fence) in lost] if lost else []

    async def _doubt(self, successes: Iterable[Settlement], uncovered: set[tuple[int, int]]) -> set[tuple[int, int]]:
        """Which of these are lost? Others are on record from an earlier try, whose answer did not reach us."""
        doubted = [_in_full(each) for each in successes if (each.run.id, each.run.fence) in uncovered]
        answer = await self._post("settle", SettleBody(self._worker, doubted=doubted), SettleAnswer)
        return {*map(_key, answer.lost)}

    async def note_started(self, begun: Sequence[tuple[Claimed, datetime]]) -> set[tuple[int, int]]:
        started = Begun(
            [encode("run", run.id) for run, _ in begun], [run.fence for run, _ in begun], [at for _, at in begun]
        )
        answer = await self._beat(Heartbeat(self._worker, started=started))
        return {(run.id, run.fence) for run, _ in begun} - {*map(_key, answer.lost)}

    async def forget(self, fences: Sequence[int]) -> None:
        """Most went with the settlement of their last runs."""
        left = [fence for fence in fences if fence not in self._forgotten]
        if left:
            await self._post("settle", SettleBody(self._worker, forget=left), SettleAnswer)
        self._forgotten.difference_update(fences)

    async def publish(self, highest: dict[int, int]) -> None:
        """The gateway does, which sees the ranks."""

    async def promote(self) -> int:
        """Not ours to do: those who speak to the database see what has fallen due."""
        return 0

    async def beat(self, load: Load) -> Standing | None:
        running, rate = load
        told = InHand([running.get(lane, 0) for lane in self._lanes], [rate.get(lane, 0.0) for lane in self._lanes])
        try:
            answer = await self._beat(Heartbeat(self._worker, load=told))
        except Unknown:
            return None
        paused = frozenset(answer.paused)
        if paused != self._paused:
            self._paused = paused
            self._hang_up.set()  # a claim that waits asks for the lanes that were open when it began
        return Standing(answer.draining, paused) if answer.alive else None

    async def listen(self, wake: Callable[[], None], news: Callable[[], None]) -> None:
        """Claims wait at the gateway, which listens; news come with heartbeats."""

    def hurry(self) -> None:
        self._is_hurried = True
        self._hang_up.set()

    async def leave(self) -> None:
        with suppress(Unknown):
            await self._beat(Heartbeat(self._worker, leaving=True))

    async def close(self) -> None:
        """The session belongs to whoever opened it."""

    async def _beat(self, body: Heartbeat) -> HeartbeatAnswer:
        return await self._post("heartbeat", body, HeartbeatAnswer, _BEAT_PATIENCE)

    async def _post(self, name: str, body: Any, kind: type[_Answer], patience: float = _PATIENCE) -> _Answer:
        try:
            async with self._session.post(
                self._paths[name],
                data=msgspec.json.encode(body),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=patience, sock_connect=_BEAT_PATIENCE),
                allow_redirects=False,
            ) as response:
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            what = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            raise OutOfReach(f"{self._url} is out of reach: {what}") from error
        if response.status == 200:
            return self._decode(content, kind)
        raise self._refusal(response.status, content)

    def _decode(self, content: bytes, kind: type[_Answer]) -> _Answer:
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.MsgspecError as error:
            raise Refused(
                f"{self._url} answers what no gateway does: {error}", "is it the address of Foliot?"
            ) from None

    def _refusal(self, status: int, content: bytes) -> Exception:
        try:
            problem = msgspec.json.decode(content, type=Problem)
        except msgspec.MsgspecError:
            said, hint = content[:200].decode(errors="replace"), "is FOLIOT_URL the address of Foliot?"
            problem = Problem(type="", title="", status=status, detail=said, hint=hint)
        if status in _PASSING:
            return OutOfReach(f"{self._url} cannot serve now: {status} {problem.detail}")
        if problem.type == "urn:foliot:problem:not-found":
            return Unknown(problem.detail, "start the worker again: it comes back as a new one")
        if problem.type == "urn:foliot:problem:conflict":
            return Contended(problem.detail, problem.hint)
        if problem.type and status in _UNFIT:
            said = "; ".join(f"{each.field}: {each.message}" for each in problem.errors or ())
            return NotTaken(f"{self._url} cannot take it: {status} {said or problem.detail}", problem.hint)
        return Refused(f"{self._url} refuses us: {status} {problem.detail}", problem.hint)

    def _took(self, answer: ClaimAnswer) -> list[Claimed]:
        runs = answer.runs
        # What an answer tells is asked for right after it, and no later.
        self._specs = {
            told.spec: StoredSpec(told.lane, Spec.parse(bytes(told.body)), told.tenant) for told in answer.specs
        }
        self._names = {decode("job", job): name for job, name in answer.names.items()}
        for fence, count in Counter(runs.fence).items():
            self._left[fence] = count
        return list(_claimed(runs))


def _claimed(runs: RunColumns) -> Iterable[Claimed]:
    jobs = {job: decode("job", job) for job in {*runs.job_id} if job is not None}
    return map(
        Claimed,
        runs.fence,
        runs.position,
        [decode("run", run) for run in runs.run_id],
        [0] * len(runs.fence),  # ranks are the gateway's business
        runs.tenant,
        runs.spec,
        [None if job is None else jobs[job] for job in runs.job_id],
        runs.attempt,
        runs.deaths,
        runs.scheduled_at,
        [None if (target := bytes(raw)) == b"null" else target for raw in runs.target],
        [bytes(payload) for payload in runs.payload],
        runs.forgiven,
    )


def _in_columns(successes: Iterable[Settlement]) -> list[Succeeded]:
    by_fence: dict[int, Succeeded] = {}
    for each in successes:
        run, at = each.run, each.started_at
        part = by_fence.get(run.fence)
        if part is None:
            part = by_fence[run.fence] = Succeeded(run.fence, [], [], [])
        part.run_id.append(encode("run", run.id))
        part.position.append(run.position)
        part.started_at.append(at or run.scheduled_at)
    return list(by_fence.values())


def _in_full(settlement: Settlement) -> Ended:
    run = settlement.run
    return Ended(
        run_id=encode("run", run.id),
        fence=run.fence,
        position=run.position,
        tenant=run.tenant,
        job_id=None if run.job is None else encode("job", run.job),
        attempt=run.attempt,
        scheduled_at=run.scheduled_at,
        started_at=settlement.started_at,
        outcome=settlement.outcome,
    )


def _key(ref: RunRef) -> tuple[int, int]:
    return decode("run", ref.run_id), ref.fence
