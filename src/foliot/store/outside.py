"""Attempts that go on outside: found by who says how they ended, or when their time is up."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from foliot.domain.outcome import Ending, Outcome
from foliot.domain.seal import Attempt, Voucher
from foliot.domain.spec import Spec
from foliot.domain.states import State
from foliot.store.database import Connection, Database, Line, Row
from foliot.store.dispatch import Called, Claimed, Settlement, conclude, conclude_outside
from foliot.store.statements import SQL

_OF_RUN: Final = ("id", "tenant", "spec", "job", "attempt", "deaths", "forgiven", "tied", "scheduled_at")


class Going(NamedTuple):
    """An attempt that has not ended."""

    run: Claimed
    spec: Spec
    started_at: datetime
    worker: int
    is_outside: bool
    """If not, the worker that called its handler holds it still."""
    is_unwanted: bool
    """Whether somebody asked for its end."""

    def settlement(self, outcome: Outcome) -> Settlement:
        return Settlement(self.run, self.started_at, outcome)


class Ended(NamedTuple):
    """How an attempt ended, where that left its run, and when."""

    ending: Ending
    state: State
    at: datetime


async def voucher_of(database: Database | Line, worker: int) -> Voucher:
    """What this worker vouches with for its attempts. It never changes."""
    return Voucher(worker, await database.fetchval("derived_key", "worker", worker))


async def cursor_key(database: Database) -> bytes:
    """What the cursors of all lists are signed with."""
    return await database.fetchval("derived_key", "cursors", 0)  # type: ignore[no-any-return]


async def signing_key(database: Database, tenant: int) -> bytes:
    """What calls of this tenant's handlers are signed with. It never changes."""
    return await database.fetchval("signing_key", tenant)  # type: ignore[no-any-return]


async def find_attempt(line: Line, attempt: Attempt) -> Going | None:
    """None if it is over, or never was."""
    rows = await line.fetch("find_attempt", attempt.run, attempt.fence, attempt.worker)
    return _going(rows[0], attempt.fence, attempt.worker) if rows else None


async def find_end(line: Line, attempt: Attempt) -> Ended | None:
    rows = await line.fetch("find_end", attempt.tenant, attempt.run, attempt.fence)
    return Ended(Ending(rows[0]["ending"]), State(rows[0]["state"]), rows[0]["finished_at"]) if rows else None


async def keep_late_word(line: Line, attempt: Attempt, ending: Ending, error: str | None) -> None:
    """What was said of an attempt that had ended otherwise: for people, and without effect. May be repeated."""
    await line.fetch("keep_late_word", attempt.tenant, attempt.run, attempt.fence, ending, error)


async def end(line: Line, going: Going, outcome: Outcome, called: Called) -> bool:
    """End an attempt; whether it had not ended before, or changed its place just now."""
    deed = conclude_outside if going.is_outside else conclude
    return bool(await deed(line, going.worker, [going.settlement(outcome)], called))


async def overdue(line: Line, most: int) -> list[Going]:
    """Those outside whose time is up."""
    return [_going(row, row["fence"], row["worker"]) for row in await line.fetch("overdue_outside", most)]


def _going(row: Row, fence: int, worker: int) -> Going:
    fields: dict[str, Any] = {name: row[name] for name in _OF_RUN}
    run = Claimed(fence=fence, position=row["position"], rank=0, target=None, payload=b"", **fields)
    return Going(run, Spec.parse(row["spec_body"]), row["started_at"], worker, row["is_outside"], row["is_unwanted"])


async def cancel_outside(connection: Connection, runs: Sequence[int], why: str) -> list[int]:
    """End those of these that go on outside, in the caller's transaction; which they were. Their ties are locked."""
    return [row["run"] for row in await connection.fetch(SQL["end_outside_runs"], runs, why)]
