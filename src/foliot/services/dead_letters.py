"""Dead letters, seen and decided about: one by one, or up to a thousand at once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from foliot.domain.errors import Conflict, NotFound
from foliot.domain.ids import encode, instant_of
from foliot.domain.letters import MOST_ATTEMPTS, Selection
from foliot.domain.spec import shown
from foliot.kit import telemetry
from foliot.kit.signals import READY
from foliot.store import letters
from foliot.store.audit import note
from foliot.store.database import Connection, Database
from foliot.store.flows import Flow, reserve
from foliot.store.letters import LetterRow, Replayed
from foliot.store.sealed import opened
from foliot.store.submission import Asked, answer_once, do_once
from foliot.store.vault import NO_VAULT, Vault
from foliot.wire.letters import LettersDone, LetterView, RefusedRun, WholeLetter
from foliot.wire.pages import Page, id_below, page_of
from foliot.wire.run_views import AttemptView

_BY_HAND: Final = "by hand"
_NOT_THERE: Final = "there is no such dead letter: it may have been replayed or discarded"


class DeadLetters:
    """Serves one tenant at a time; another tenant's id is answered like one that never was."""

    def __init__(self, database: Database, hint: Callable[[str], None], vault: Vault = NO_VAULT) -> None:
        self._database = database
        self._hint = hint
        self._vault = vault

    async def list(self, tenant: int, selection: Selection, *, limit: int, cursor: str | None) -> Page[LetterView]:
        """Newest runs first."""
        rows = await letters.list_letters(self._database, tenant, selection, below=id_below(cursor), limit=limit + 1)
        rows = await opened(self._vault, tenant, rows)
        return page_of(rows, limit, lambda row: LetterView(**letter_fields(row)), lambda row: encode("c", row.id))

    async def read(self, tenant: int, run: int) -> LetterRow:
        row = await letters.find_letter(self._database, tenant, run)
        if row is None:
            raise NotFound("there is no such dead letter")
        (shown,) = await opened(self._vault, tenant, [row])
        return shown

    async def replay(
        self, tenant: int, runs: Sequence[int], *, key: str | None = None, fingerprint: bytes = b""
    ) -> bytes:
        """Let these runs go on, behind what waits in their flows; those that cannot are told with the reason."""
        once = Asked(tenant, key, fingerprint)

        async def write() -> bytes:
            ranks = await self._ranks(tenant, runs)
            async with self._database.transaction() as connection:
                told = await letters.replay(connection, tenant, ranks, f"replayed {_BY_HAND}")
                body = await _answer(connection, once, runs, reasons := _reasons(told, runs))
                await _note(connection, [run for run in runs if run not in reasons], "replayed")
            self._tell(sum(each.done for each in told))
            return body

        body, _ = await do_once(self._database, once, write)
        return body

    async def discard(
        self, tenant: int, runs: Sequence[int], *, key: str | None = None, fingerprint: bytes = b""
    ) -> bytes:
        """Give these runs up; those that are no dead letters are told."""
        once = Asked(tenant, key, fingerprint)

        async def write() -> bytes:
            async with self._database.transaction() as connection:
                gone = set(await letters.discard(connection, tenant, runs, f"discarded {_BY_HAND}"))
                await _note(connection, sorted(gone), "discarded")
                body = await _answer(connection, once, runs, {run: _NOT_THERE for run in runs if run not in gone})
            telemetry.LETTERS_DISCARDED.inc(len(gone))
            return body

        body, _ = await do_once(self._database, once, write)
        return body

    async def retry(self, tenant: int, run: int) -> None:
        """Let one run go on, or say in a Conflict why it cannot."""
        ranks = await self._ranks(tenant, [run])
        async with self._database.transaction() as connection:
            told = await letters.replay(connection, tenant, ranks, f"replayed {_BY_HAND}")
            await _note(connection, [each.id for each in told if each.done], "replayed")
        if reason := _reasons(told, [run]).get(run):
            raise Conflict(reason, "only a run that is dead, and whose job is not cancelled, can be retried")
        self._tell(1)

    def _tell(self, replayed: int) -> None:
        telemetry.LETTERS_REPLAYED.inc(replayed)
        if replayed:
            self._hint(READY)

    async def _ranks(self, tenant: int, runs: Sequence[int]) -> dict[int, int]:
        """Ranks for those that are dead letters: in their flows, like new work."""
        found = await letters.letters_to_rank(self._database, tenant, runs)
        counts: Counter[Flow] = Counter(each.flow for each in found)
        ranks = await reserve(self._database, counts, {each.tenant: each.weight for each in found}, 0)
        return {each.id: ranks.take(each.flow) for each in found}


async def _note(connection: Connection, runs: Sequence[int], became: str) -> None:
    names = [encode("run", run) for run in runs]
    if names:
        subject = names[0] if len(names) == 1 else "runs"
        await note(connection, subject, {"state": "dead"}, {"became": became, "runIds": names})


def whole_letter(row: LetterRow, executions: Sequence[AttemptView]) -> WholeLetter:
    payload = msgspec.Raw(row.payload or b"null")
    return WholeLetter(**letter_fields(row), payload=payload, executions=list(executions))


def letter_fields(row: LetterRow) -> dict[str, Any]:
    return {
        "run_id": encode("run", row.id),
        "job_id": None if row.job is None else encode("job", row.job),
        "handler": shown(row.spec.handler, row.target),
        "queue": row.spec.queue,
        "priority": row.spec.priority.name.lower(),
        "scheduled_at": row.scheduled_at,
        "created_at": instant_of(row.id),
        "died_at": row.died_at,
        "attempts": row.attempt,
        "error_class": row.error_class,
        "error_message": row.error,
    }


def _reasons(told: Sequence[Replayed], runs: Sequence[int]) -> dict[int, str]:
    """Why these runs were not replayed; those that were are left out."""
    found = {each.id: each for each in told}
    return {run: _reason(found.get(run)) for run in runs if not ((each := found.get(run)) and each.done)}


def _reason(each: Replayed | None) -> str:
    if each is None:
        return _NOT_THERE
    if each.is_worn_out:
        return f"it has been tried {MOST_ATTEMPTS:,} times: submit the work anew, or discard it"
    return "its job is cancelled: submit the work anew, or discard it"


async def _answer(connection: Connection, once: Asked, runs: Sequence[int], refused: Mapping[int, str]) -> bytes:
    done = LettersDone(
        run_ids=[encode("run", run) for run in runs if run not in refused],
        refused=[RefusedRun(encode("run", run), reason) for run, reason in refused.items()],
        operation=None,
    )
    body = msgspec.json.encode(done)
    await answer_once(connection, once, body)
    return body
