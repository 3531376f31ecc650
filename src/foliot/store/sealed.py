"""Rows with what is sealed in them opened, for those who may read them; and what is written, sealed."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from foliot.domain.errors import Unavailable
from foliot.domain.outcome import Outcome
from foliot.domain.passage import Passage
from foliot.kit.sealing import MAGIC, WORD
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.letters import LetterRow
from foliot.store.reading import AttemptRow, JobRow, RunRow
from foliot.store.reports import Report, Said
from foliot.store.submission import NewRun
from foliot.store.vault import Lock, Mark, Owner, Vault

Row = TypeVar("Row", JobRow, RunRow, LetterRow, AttemptRow)

_BYTES: Final = ("payload", "target", "result")
_TEXTS: Final = {"error": "error", "late_error": "error", "last_error": "error"}
_NO_KEY: Final = "what it said is to be encrypted, and its worker has no master key (FOLIOT_MASTER_KEY_FILE)"
PAYLOAD: Final = "payload"
TARGET: Final = "target"
RESULT: Final = "result"
ERROR: Final = "error"
CHECKPOINT: Final = "checkpoint"
MESSAGE: Final = "message"


async def opened(vault: Vault, tenant: int, rows: Iterable[Row]) -> list[Row]:
    """For people. What cannot be opened says so in its place."""
    return [await _opened(vault, tenant, row) for row in rows]


async def _opened(vault: Vault, tenant: int, row: Row) -> Row:
    changes: dict[str, Any] = {}
    for field in _BYTES:
        value = getattr(row, field, None)
        if value is not None and value[:2] == MAGIC:
            changes[field] = await vault.opened(_owner(tenant, row, field), field, value)
    for field, sealed_as in _TEXTS.items():
        text = getattr(row, field, None)
        if text is not None and WORD in text:
            changes[field] = await vault.opened_text(_owner(tenant, row, field), sealed_as, text)
    return msgspec.structs.replace(row, **changes) if changes else row


def _owner(tenant: int, row: JobRow | RunRow | LetterRow | AttemptRow, field: str) -> Owner:
    match row:
        case JobRow():
            return Owner(tenant, run=row.last_run if field == "last_error" else None, job=row.id)
        case AttemptRow():
            return Owner(tenant, row.run, row.job)
        case _:
            return Owner(tenant, row.id, row.job)


async def opened_said(vault: Vault, tenant: int, run: int, said: Said) -> Said:
    if said.message is None or WORD not in said.message:
        return said
    return said._replace(message=await vault.opened_text(Owner(tenant, run), MESSAGE, said.message))


async def opened_passage(vault: Vault, tenant: int, run: int, passage: Passage) -> Passage:
    if passage.error is None or WORD not in passage.error:
        return passage
    return passage._replace(error=await vault.opened_text(Owner(tenant, run), ERROR, passage.error))


async def opened_runs(vault: Vault, claimed: list[Claimed]) -> list[Claimed]:
    """For the worker that holds them."""
    sealed = [run for run in claimed if run.payload[:1] == b"\0"]
    if not sealed:
        return claimed
    for run in sealed:
        await vault.learn(run.tenant, run.payload)
    return [_opened_run(vault, run) if run.payload[:1] == b"\0" else run for run in claimed]


def _opened_run(vault: Vault, run: Claimed) -> Claimed:
    owner = Owner(run.tenant, run.id, run.job)
    target = None if run.target is None else vault.opened_now(owner, TARGET, run.target)
    return msgspec.structs.replace(run, payload=vault.opened_now(owner, PAYLOAD, run.payload), target=target)


def sealed_run(lock: Lock | None, run: NewRun, number: int) -> NewRun:
    """A run that is about to be written under this number."""
    if lock is None:
        return run
    payload = lock.seal(Mark.RUN, number, PAYLOAD, run.payload)
    target = None if run.target is None else lock.seal(Mark.RUN, number, TARGET, run.target)
    return run._replace(payload=payload, target=target)


async def sealed_endings(vault: Vault, batch: Sequence[Settlement]) -> Sequence[Settlement]:
    """What handlers said of their ends, before it is written down."""
    sealing = await vault.sealing()
    if not sealing:
        return batch
    return [await _sealed_ending(vault, each) if each.run.tenant in sealing else each for each in batch]


async def _sealed_ending(vault: Vault, ended: Settlement) -> Settlement:
    """An end must get on record: what cannot be sealed is left out of it."""
    try:
        lock = await vault.lock(ended.run.tenant)
    except Unavailable:
        error = None if ended.outcome.error is None else _NO_KEY
        return msgspec.structs.replace(ended, outcome=msgspec.structs.replace(ended.outcome, error=error, result=None))
    if lock is None:
        return ended
    return msgspec.structs.replace(ended, outcome=sealed_outcome(lock, ended.run.id, ended.outcome))


def sealed_outcome(lock: Lock, run: int, outcome: Outcome) -> Outcome:
    if outcome.error is None and outcome.result is None:
        return outcome
    result = None if outcome.result is None else lock.seal(Mark.RUN, run, RESULT, outcome.result)
    return msgspec.structs.replace(outcome, error=lock.text(run, ERROR, outcome.error), result=result)


async def sealed_reports(vault: Vault, reports: Sequence[Report]) -> Sequence[Report]:
    """What handlers tell meanwhile."""
    locks = await vault.locks(each.tenant for each in reports)
    return [_sealed_report(locks.get(each.tenant), each) for each in reports] if locks else reports


def _sealed_report(lock: Lock | None, report: Report) -> Report:
    if lock is None:
        return report
    said = report.progress
    if said is not None:
        said = msgspec.structs.replace(said, message=lock.text(report.run, MESSAGE, said.message))
    state = None if report.state is None else lock.seal(Mark.RUN, report.run, CHECKPOINT, report.state)
    return report._replace(progress=said, state=state)
