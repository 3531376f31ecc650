"""Why a run does not start, and why a job does or does not fire: asked of one moment, answered in sentences."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from foliot.domain.calendar import Calendar
from foliot.domain.errors import NotFound
from foliot.domain.explain_job import explain_job
from foliot.domain.explain_run import explain_run
from foliot.domain.gates import Code, Explanation, arranged, closed
from foliot.domain.ids import encode
from foliot.domain.job import Kind
from foliot.domain.run_facts import RunFacts
from foliot.domain.schedule import Recurrence, parse_key
from foliot.store import explain, reading
from foliot.store.calendars import Bodies, fetch_on
from foliot.store.database import Connection, Database
from foliot.store.jobs import clock
from foliot.store.reading import JobRow
from foliot.store.sealed import ERROR
from foliot.store.vault import NO_VAULT, Owner, Vault
from foliot.wire.explain import JobExplanation, RunExplanation, blocking_word, gate_view, held_view


class Explainer:
    """Reads for one tenant at a time; another tenant's id is answered like one that never was."""

    def __init__(self, database: Database, vault: Vault = NO_VAULT) -> None:
        self._database = database
        self._vault = vault
        self._calendars = Bodies()

    async def run(self, tenant: int, run: int) -> RunExplanation:
        async with explain.one_moment(self._database) as connection:
            facts = await explain.facts_of_run(connection, tenant, run)
        if facts is None:
            raise NotFound("there is no such run")
        explanation = explain_run(await self._opened(tenant, facts))
        estimate = explanation.estimate
        return RunExplanation(
            run_id=encode("run", run),
            job_id=None if facts.job is None else encode("job", facts.job.id),
            state=facts.state.word,
            sentence=explanation.sentence,
            blocking=blocking_word(explanation),
            ahead=_ahead(facts),
            estimated_start=None if estimate is None else estimate.at,
            estimate_from=None if estimate is None else estimate.basis,
            gates=[gate_view(gate) for gate in explanation.gates],
            at=facts.now,
        )

    async def _opened(self, tenant: int, facts: RunFacts) -> RunFacts:
        if facts.error is None:
            return facts
        error = await self._vault.opened_text(Owner(tenant, facts.run), ERROR, facts.error)
        return msgspec.structs.replace(facts, error=error)

    async def job(self, tenant: int, job: int) -> JobExplanation:
        async with explain.one_moment(self._database) as connection:
            row = await reading.find_job(connection, tenant, job)
            if row is None:
                raise NotFound("there is no such job")
            held = await explain.runs_of_job(connection, tenant, job)
            if row.kind == Kind.ONE_TIME:
                explanation, at, fire = await _one_time(connection, tenant, row)
            else:
                calendars = await self._calendars.learn(partial(fetch_on, connection), [row.schedule_key])
                facts = await explain.facts_of_job(connection, tenant, row, _recurrence(row, calendars))
                explanation, at, fire = explain_job(facts), facts.now, facts.following
        estimate = explanation.estimate
        return JobExplanation(
            job_id=encode("job", job),
            status=row.status,
            sentence=explanation.sentence,
            blocking=blocking_word(explanation),
            next_fire_at=fire if estimate is not None else None,
            estimated_start=None if estimate is None else estimate.at,
            estimate_from=None if estimate is None else estimate.basis,
            gates=[gate_view(gate) for gate in explanation.gates],
            runs=[held_view(*each) for each in held],
            at=at,
        )


class _Answer(NamedTuple):
    explanation: Explanation
    at: datetime
    fire: datetime | None


async def _one_time(connection: Connection, tenant: int, row: JobRow) -> _Answer:
    """A one-time job is as far as its only run is."""
    facts = None if row.run is None else await explain.facts_of_run(connection, tenant, row.run)
    if facts is None:
        gate = closed(Code.FINISHED, "Its run has ended, and is no longer on record.")
        return _Answer(Explanation(arranged([gate]), gate.says), await clock(connection), None)
    return _Answer(explain_run(facts), facts.now, facts.due_at)


def _recurrence(row: JobRow, calendars: Mapping[str, Calendar]) -> Recurrence | None:
    return None if row.schedule_key is None else parse_key(row.schedule_key, calendars)


def _ahead(facts: RunFacts) -> int | None:
    """In the line that it waits in, or among those that wait for a worker."""
    return facts.ahead if facts.line is None else facts.line.ahead
