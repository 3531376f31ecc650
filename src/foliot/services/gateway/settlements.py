"""Endings that remote workers tell: successes of all of them in one statement, the rest worker by worker."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from foliot.domain.errorclass import LONGEST_NAME
from foliot.domain.errors import InvalidField
from foliot.domain.ids import decode, decode_all, encode
from foliot.domain.outcome import LONGEST_ERROR, Outcome
from foliot.domain.result import is_small_json
from foliot.domain.states import TRANSITIONS, Event, State
from foliot.kit.joined import Joined
from foliot.kit.signals import READY
from foliot.services.gateway.apart import together_or_apart
from foliot.store import dispatch
from foliot.store.database import Line
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.gateway import Part, forget_for_many, settle_for_many
from foliot.store.recovery import is_contended, is_gone, is_unfit
from foliot.store.reports import tenants_of
from foliot.store.sealed import sealed_endings
from foliot.store.vault import NO_VAULT, Vault
from foliot.wire.work import Ended, RunRef, SettleAnswer, SettleBody, Succeeded, same_length

MOST_AT_ONCE: Final = 4_000
LONGEST_DELAY: Final = timedelta(days=366)
_FOR_WORKERS: Final = frozenset(
    event for state, event in TRANSITIONS if state is State.RUNNING and event not in {Event.LAPSED, Event.HELD}
)
"""What a worker may say of an attempt; the rest happens without it."""


class Settling(NamedTuple):
    """What one call settles."""

    worker: int
    parts: list[Part]
    ended: list[Settlement]
    doubted: list[Settlement]
    forget: list[int]

    @property
    def size(self) -> int:
        return sum(len(part.runs) for part in self.parts) + len(self.ended) + len(self.doubted)


class Settlements:
    def __init__(self, line: Line, hint: Callable[[str], None], vault: Vault = NO_VAULT) -> None:
        self._line = line
        self._hint = hint
        self._vault = vault
        self.settle = Joined(self._settle, size=lambda each: each.size, most=MOST_AT_ONCE)

    async def run(self) -> None:
        """Write down what is told, until cancelled."""
        await self.settle.run()

    async def _settle(self, calls: Sequence[Settling]) -> list[SettleAnswer | Exception]:
        return await together_or_apart(self._settle_all, calls)

    async def _settle_all(self, calls: Sequence[Settling]) -> list[SettleAnswer | Exception]:
        """Successes first, then the others, last the claims that are done with: each by itself may be repeated."""
        parts = [part for call in calls for part in call.parts]
        covered = await settle_for_many(self._line, parts, self._called) if parts else None
        answers = [await self._rest(call, covered) for call in calls]
        if over := [(call.worker, fence) for call in calls for fence in call.forget]:
            await forget_for_many(self._line, over)
        return answers

    async def _rest(self, call: Settling, covered: set[tuple[int, int]] | None) -> SettleAnswer | Exception:
        uncovered = [] if covered is None else _uncovered(call.parts, covered)
        try:
            lost: list[Settlement] = []
            ended = await self._sealed(call.ended) if call.ended else []
            if ended and await dispatch.conclude(self._line, call.worker, ended, self._called) < len(ended):
                lost += await self._lost(call.worker, call.ended)
            if call.doubted:
                lost += await self._lost(call.worker, call.doubted)
            if results := [each for each in lost if each.outcome.ending.is_result]:
                kept = await self._sealed(results)
                await dispatch.keep_late_results(self._line, call.worker, kept, is_trusted=False)
        except Exception as error:
            if is_gone(error) or is_contended(error):
                raise
            # What one worker sent cannot be written down: the others are not to suffer for it.
            return InvalidField("ended", f"cannot be kept: {error}", "say it otherwise") if is_unfit(error) else error
        return SettleAnswer([_ref(each.run.id, each.run.fence) for each in lost], uncovered)

    async def _sealed(self, told: Sequence[Settlement]) -> Sequence[Settlement]:
        """Whose runs they are is for the database to say: by a worker's word, it could keep them from being sealed.

        What is found nowhere is past: there nothing is kept unless its tenant is the one that is told.
        """
        if not await self._vault.sealing():
            return told
        owners = await tenants_of(self._line, [each.run.id for each in told])
        return await sealed_endings(self._vault, [_owned(each, owners) for each in told])

    def _called(self, lanes: Sequence[int]) -> None:
        """Runs became ready that had waited for those that ended here."""
        if lanes:
            self._hint(READY)

    async def _lost(self, worker: int, batch: list[Settlement]) -> list[Settlement]:
        """Those that are not on record as this worker's. A repeated settle finds its own rows: that is no loss."""
        ours = await dispatch.settled(self._line, worker, batch)
        return [each for each in batch if (each.run.id, each.run.fence) not in ours]


def _owned(told: Settlement, owners: Mapping[int, int]) -> Settlement:
    run = msgspec.structs.replace(told.run, tenant=owners.get(told.run.id, told.run.tenant))
    return msgspec.structs.replace(told, run=run)


def settling_of(worker: int, body: SettleBody) -> Settling:
    return Settling(
        worker,
        [_part(worker, each, f"succeeded[{index}]") for index, each in enumerate(body.succeeded)],
        [_settlement(each, f"ended[{index}]") for index, each in enumerate(body.ended)],
        [_settlement(each, f"doubted[{index}]") for index, each in enumerate(body.doubted)],
        body.forget,
    )


def _part(worker: int, told: Succeeded, place: str) -> Part:
    if not same_length(told, "run_id", "position", "started_at"):
        raise InvalidField(place, "its columns differ in length", "one entry for each run in every column")
    check_instants(told.started_at, place)
    return Part(worker, told.fence, decode_all("run", told.run_id), told.position, told.started_at)


def check_instants(instants: Iterable[datetime], place: str) -> None:
    """What a database could not keep is a fault of the call, not of ours."""
    if not all(2000 <= at.year <= 2100 for at in instants):
        raise InvalidField(f"{place}.startedAt", "lies before 2000 or after 2100", "set the worker's clock")


def _settlement(told: Ended, place: str) -> Settlement:
    check_instants([told.scheduled_at, *([told.started_at] if told.started_at else [])], place)
    run = Claimed(
        fence=told.fence,
        position=told.position,
        id=decode("run", told.run_id),
        rank=0,
        tenant=told.tenant,
        spec=0,
        job=None if told.job_id is None else decode("job", told.job_id),
        attempt=told.attempt,
        deaths=0,
        scheduled_at=told.scheduled_at,
        target=None,
        payload=b"",
    )
    return Settlement(run, told.started_at, _outcome(told.outcome, f"{place}.outcome"))


def _outcome(told: Outcome, place: str) -> Outcome:
    if told.event not in _FOR_WORKERS:
        raise InvalidField(f"{place}.event", f"{told.event.value!r} is not for workers to say", "see the reference")
    if told.delay is not None and not timedelta() <= told.delay <= LONGEST_DELAY:
        raise InvalidField(f"{place}.delay", f"is not from 0 to {LONGEST_DELAY.days} days", "try again sooner")
    kind = None if told.error_class is None else _storable(told.error_class)[:LONGEST_NAME]
    error = None if told.error is None else _storable(told.error)[-LONGEST_ERROR:]
    result = told.result if told.result is not None and is_small_json(told.result) else None
    return msgspec.structs.replace(told, error=error, error_class=kind, result=result)


def _storable(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _uncovered(parts: list[Part], covered: set[tuple[int, int]]) -> list[RunRef]:
    return [_ref(run, part.fence) for part in parts for run in part.runs if (run, part.fence) not in covered]


def _ref(run: int, fence: int) -> RunRef:
    return RunRef(encode("run", run), fence)
