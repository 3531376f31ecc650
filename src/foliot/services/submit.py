"""Accepting runs: everything that arrives while one commit is under way goes into the next."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from foliot.domain.errors import Conflict, Unavailable
from foliot.domain.ids import encode
from foliot.kit import telemetry
from foliot.kit.signals import DUE, READY
from foliot.store.admission import enter
from foliot.store.audit import DOING, Deed, Note, write
from foliot.store.database import Connection, Database
from foliot.store.flows import Flow, reserve
from foliot.store.recovery import is_contended, is_gone
from foliot.store.sealed import sealed_run
from foliot.store.submission import (
    Answer,
    NewRun,
    Once,
    enqueue,
    enqueue_alone,
    first_answer,
    hold_open,
    plan,
    remember,
)
from foliot.store.vault import NO_VAULT, Vault

_SPEC = attrgetter("spec")
MOST_FAILURES = 5
LARGEST_COMMIT = 2_000
"""Runs gathered into one commit; a single larger call is committed whole, by itself."""


class Key(msgspec.Struct, frozen=True):
    """An idempotency key: the call is done once, and `answer` (made from the new ids) is what repeats get."""

    text: str
    tenant: int
    fingerprint: bytes
    answer: Callable[[Sequence[int]], bytes]


class Accepted(msgspec.Struct, frozen=True):
    """The ids of the new runs, or the answer that this key was given before."""

    ids: Sequence[int] = ()
    repeated: bytes | None = None


class _Call(msgspec.Struct, eq=False):
    runs: Sequence[NewRun]
    key: Key | None
    done: "asyncio.Future[Accepted]"
    deed: Deed | None = None
    """Who wants it, if that is to be noted."""
    failures: int = 0
    """How often others held what it needs for longer than we wait."""


class Submitter:
    """Group commit without a timer. Acknowledged means on disk: a call returns after its commit, not before."""

    def __init__(self, database: Database, hint: Callable[[str], None], vault: Vault = NO_VAULT) -> None:
        self._vault = vault
        self._ranks = database.line(synchronous_commit="off")
        self._writes = database.line(lock_timeout="200ms")
        self._hint = hint
        self._waiting: list[_Call] = []
        self._arrived = asyncio.Event()

    async def submit(self, runs: Sequence[NewRun], key: Key | None = None) -> Accepted:
        """Write `runs`, all or none."""
        call = _Call(runs, key, asyncio.get_running_loop().create_future(), DOING.get())
        self._waiting.append(call)
        self._arrived.set()
        return await call.done

    async def run(self) -> None:
        """Commit what arrives until cancelled. One task of this must run for `submit` to return."""
        try:
            while True:
                await self._arrived.wait()
                if calls := self._gather():
                    await self._commit(calls)
                else:
                    self._arrived.clear()
        finally:
            for call in self._waiting:
                call.done.cancel()
            await self._ranks.close()
            await self._writes.close()

    def _gather(self) -> list[_Call]:
        taken, size = 0, 0
        for call in self._waiting:
            if taken and size + len(call.runs) > LARGEST_COMMIT:
                break
            taken, size = taken + 1, size + len(call.runs)
        calls, self._waiting = self._waiting[:taken], self._waiting[taken:]
        return [call for call in calls if not call.done.done()]

    async def _commit(self, calls: list[_Call]) -> None:
        try:
            answers = await self._write(calls)
        except asyncio.CancelledError:
            for call in calls:
                call.done.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - every caller gets it as the answer to its own call
            await self._after(calls, error)
        else:
            for call, answer in zip(calls, answers, strict=True):
                if not call.done.done():
                    call.done.set_result(answer)
            self._tell(calls)

    def _tell(self, calls: list[_Call]) -> None:
        now = [run.starts_now for call in calls for run in call.runs]
        telemetry.RUNS_ACCEPTED.inc(len(now))
        if any(now):
            self._hint(READY)
        if not all(now):
            self._hint(DUE)

    async def _after(self, calls: list[_Call], error: Exception) -> None:
        """One bad row must fail alone: what failed together is tried apart."""
        if len(calls) > 1 and not is_gone(error):
            for call in calls:
                await self._commit([call])
            return
        if is_gone(error):
            hint = "it may have been written or not: repeat the call with the same Idempotency-Key"
            error = Unavailable("the database went away while the call was being written", hint)
        elif is_contended(error) and calls[0].key is not None:
            error = Unavailable("another call with this Idempotency-Key is being written", "repeat the call")
        elif is_contended(error):
            # A line or a flow, which nobody holds for long unless the machine is overloaded; and nothing was written.
            calls[0].failures += 1
            if calls[0].failures < MOST_FAILURES:
                self._waiting.append(calls[0])
                self._arrived.set()
                return
            error = Unavailable("others held what the call needs for too long", "nothing was written: repeat the call")
        for call in calls:
            if not call.done.done():
                call.done.set_exception(error)

    async def _write(self, calls: list[_Call]) -> list[Accepted]:
        # What is sealed is bound to its run, whose id must be known before.
        if (lone := _lone(calls)) is not None and lone.spec.tenant not in await self._vault.sealing():
            try:
                async with self._writes.borrow(atomic=False) as connection:
                    return [Accepted(ids=[await enqueue_alone(connection, lone)])]
            except Exception as error:
                if not is_contended(error):
                    raise
        return await self._write_together(calls)

    async def _write_together(self, calls: list[_Call]) -> list[Accepted]:
        runs = [run for call in calls for run in call.runs]
        now = [run for run in runs if run.is_free]
        all_free = len(now) == len(runs)
        specs = Counter(map(_SPEC, now))  # few, so that what is asked of them need not be asked of every run
        flows = {spec: spec.flow for spec in specs}
        counts: Counter[Flow] = Counter()
        for spec, count in specs.items():
            counts[flows[spec]] += count
        ranks = await reserve(self._ranks, counts, {spec.tenant: spec.weight for spec in specs}, len(runs))
        minted = _deal(ranks.ids, calls)
        alone = all_free or not (now or any(run.enters for run in runs))  # one statement writes them all
        keyed = any(call.key for call in calls)
        atomic = keyed or not alone or any(run.job is not None for run in runs)
        locks = await self._vault.locks(run.spec.tenant for run in runs) if await self._vault.sealing() else {}
        async with self._writes.borrow(atomic=atomic) as connection:
            repeated = await self._remember(connection, calls, minted) if keyed else [None] * len(calls)
            rows = [
                (run, id_)
                for call, numbers, answer in zip(calls, minted, repeated, strict=True)
                if answer is None
                for run, id_ in zip(call.runs, numbers, strict=True)
            ]
            if locks:
                rows = [(sealed_run(locks.get(run.spec.tenant), run, id_), id_) for run, id_ in rows]
            if fresh := {run.job for run, _ in rows if run.job is not None}:
                await _refuse_closed(connection, fresh)
            if at_once := rows if all_free else [row for row in rows if row[0].is_free]:
                following = {spec: ranks.of(flow) for spec, flow in flows.items()}
                taken = [next(following[run.spec]) for run, _ in at_once]
                await enqueue(connection, [run for run, _ in at_once], [id_ for _, id_ in at_once], taken)
            if later := [] if all_free else [row for row in rows if not row[0].is_free]:
                await plan(connection, [run for run, _ in later], [id_ for _, id_ in later])
            await enter(connection, [id_ for run, id_ in later if run.enters])
            if notes := _notes(calls, minted, repeated):
                await write(connection, notes)
        return [
            Accepted(ids=numbers) if answer is None else Accepted(repeated=answer)
            for numbers, answer in zip(minted, repeated, strict=True)
        ]

    async def _remember(
        self, connection: Connection, calls: list[_Call], minted: list[list[int]]
    ) -> list[bytes | None]:
        """For each call the first answer to its key, if there was one."""
        onces: dict[tuple[int, str], tuple[int, Once]] = {}
        for index, (call, ids) in enumerate(zip(calls, minted, strict=True)):
            if key := call.key:
                answer = Answer(key.fingerprint, key.answer(ids))
                onces.setdefault((key.tenant, key.text), (index, Once(key.tenant, key.text, answer)))
        if not onces:
            return [None] * len(calls)
        known = await remember(connection, [once for _, once in onces.values()])
        return [self._first_answer(index, call, onces, known) for index, call in enumerate(calls)]

    @staticmethod
    def _first_answer(
        index: int,
        call: _Call,
        onces: dict[tuple[int, str], tuple[int, Once]],
        known: dict[tuple[int, str], Answer],
    ) -> bytes | None:
        if call.key is None:
            return None
        name = (call.key.tenant, call.key.text)
        first, once = onces[name]
        if name not in known and first == index:
            return None
        return first_answer(known.get(name, once.answer), call.key.fingerprint)


def _lone(calls: list[_Call]) -> NewRun | None:
    """The run that is all there is to write, if it is the simplest of all: due now, of no job, without a key."""
    if len(calls) > 1 or len(calls[0].runs) != 1 or calls[0].key is not None:
        return None
    run = calls[0].runs[0]
    return run if run.is_free and run.job is None else None


def _notes(calls: list[_Call], minted: list[list[int]], repeated: Sequence[bytes | None]) -> list[Note]:
    """Who has set which job going, and which run that is; what was done before was noted then."""
    return [
        Note(call.deed, encode("job", run.job), "done", after={"runId": encode("run", id_)})
        for call, numbers, answer in zip(calls, minted, repeated, strict=True)
        if call.deed is not None and answer is None
        for run, id_ in zip(call.runs, numbers, strict=True)
        if run.job is not None
    ]


def _deal(ids: list[int], calls: list[_Call]) -> list[list[int]]:
    """For each call as many of the ids as it has runs."""
    dealt, first = [], 0
    for call in calls:
        dealt.append(ids[first : first + len(call.runs)])
        first += len(call.runs)
    return dealt


async def _refuse_closed(connection: Connection, jobs: set[int]) -> None:
    if await hold_open(connection, jobs) != jobs:
        raise Conflict(
            "the job is paused or cancelled", "resume a paused job first; instead of a cancelled one, make another"
        )
