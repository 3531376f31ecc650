"""The schema keeps its promises: hot tables without foreign keys, and numbers that mean what the domain says."""

import re
from datetime import UTC, datetime

import asyncpg
import pytest

from foliot.domain.fairness import Priority
from foliot.domain.ids import Block, mint
from foliot.domain.job import Gate, Kind
from foliot.domain.outcome import Ending
from foliot.domain.states import STATUS_OF, State
from foliot.store.statements import SQL
from world import World

HOT = ("run", "ready", "claim", "history", "timer", "flow", "dead_letter", "firing", "subscription")


async def test_hot_tables_have_no_foreign_keys_either_way(world: World):
    query = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND $1::regclass IN (conrelid, confrelid)"
    assert [table for table in HOT if await world.value(query, table)] == []


async def _allowed(world: World, table: str, column: str) -> set[int]:
    """The numbers that the CHECK of a column lets through."""
    text = await world.value(
        "SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid"
        " AND c.conkey = ARRAY[a.attnum] WHERE c.contype = 'c' AND c.conrelid = $1::regclass AND a.attname = $2",
        table,
        column,
    )
    return {int(number) for number in re.findall(r"\d+", text)}


async def test_checks_let_through_what_the_domain_knows(world: World):
    assert await _allowed(world, "job", "kind") == set(Kind)
    assert await _allowed(world, "job", "gate") == set(Gate)
    # A running run is one that is admitted and no longer in `ready`.
    assert await _allowed(world, "run", "state") == {State.SCHEDULED, State.READY, State.BLOCKED}


async def test_due_runs_are_indexed_by_the_state_that_waits(world: World):
    text = await world.value(
        "SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = 'run_due'::regclass"
    )
    assert text == f"(state = {State.SCHEDULED.value})"


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("settle", f"attempt + 1, {Ending.COMPLETED.value}, {State.SUCCEEDED.value},"),
        ("conclude", f"ending = {Ending.RELEASED.value} AND (began IS NULL OR cancel_asked IS NULL) THEN 0"),
        ("conclude", f"cancel_asked IS NOT NULL THEN {Ending.CANCELLED.value} ELSE {Ending.RELEASED.value} END"),
        ("conclude", f"cancel_asked IS NOT NULL AND asked <> {State.SUCCEEDED.value} THEN {State.CANCELLED.value}"),
        ("reap", f"cancel_asked IS NOT NULL THEN {State.CANCELLED.value}\n"),
        ("end_waiting_timers", f"spec, 0, {Ending.NONE.value}, {State.CANCELLED.value}, "),
        ("end_waiting_runs", f"attempt, {Ending.NONE.value}, {State.CANCELLED.value}, "),
        ("end_waiting_runs", f"state IN ({State.SCHEDULED.value}, {State.BLOCKED.value})"),
        ("conclude", f"ending IN ({Ending.SNOOZED.value}, {Ending.RELEASED.value}) THEN 0"),
        (
            "replay",
            f"held.gate = {Gate.PAUSED.value} OR held.tied THEN {State.BLOCKED.value} ELSE {State.READY.value} END",
        ),
        ("replay", f"coalesce(job.gate IN ({Gate.OPEN.value}, {Gate.PAUSED.value}), "),
        ("replay", f"SET state = {State.READY.value} FROM back"),
        ("replay", f"attempt, {Ending.NONE.value}, {State.READY.value}, $5"),
        ("discard", f"attempt, {Ending.NONE.value}, {State.DISCARDED.value}, $4"),
        ("conclude", f"gate = {Gate.CANCELLED.value} AND asked IN ({State.SCHEDULED.value}, {State.READY.value})"),
        ("conclude", f"THEN {State.CANCELLED.value} WHEN gate = {Gate.PAUSED.value}"),
        ("conclude", f"asked = {State.READY.value} THEN {State.BLOCKED.value}"),
        ("conclude", f"next_state = {State.DEAD.value}"),
        (
            "settled",
            f"x.ending = {Ending.RELEASED.value} AND history.ending IN ({Ending.NONE.value}, {Ending.CANCELLED.value})",
        ),
        ("reap", f"began = 1 AND once THEN {State.UNKNOWN.value} "),
        ("reap", f"next_state = {State.UNKNOWN.value} THEN {Ending.UNKNOWN.value} WHEN"),
        ("list_attempts", f"l.attempt, {Ending.LOST.value}, "),
        ("reap", f">= $1 THEN {State.DEAD.value} WHEN gate = {Gate.CANCELLED.value} THEN {State.CANCELLED.value}"),
        ("reap", f"WHEN gate = {Gate.PAUSED.value} THEN {State.BLOCKED.value} ELSE {State.READY.value} END"),
        ("reap", f"began = 1 THEN {Ending.LOST.value} ELSE {Ending.NONE.value} END"),
        ("promote_runs", f"gate = {Gate.PAUSED.value} OR due.rank IS NULL THEN {State.BLOCKED.value} ELSE 1 END"),
        ("promote_timers", f"held OR due.rank IS NULL THEN {State.BLOCKED.value} ELSE {State.READY.value} END"),
        ("cancel_runs", f"attempt, {Ending.NONE.value}, {State.CANCELLED.value}, "),
        ("cancel_timers", f"spec, 0, {Ending.NONE.value}, {State.CANCELLED.value}, "),
        ("cancel_runs", f"state IN ({State.SCHEDULED.value}, {State.BLOCKED.value})"),
        ("take_back_run", f"state IN ({State.SCHEDULED.value}, {State.BLOCKED.value})"),
        ("block_runs", f"SET state = {State.BLOCKED.value} WHERE job = $1 AND (state = {State.SCHEDULED.value} "),
        ("unblock_runs", f"SET state = {State.SCHEDULED.value}\n WHERE job = $1 AND state = {State.BLOCKED.value}"),
        ("fire_chunk", f"spec, 0, {Ending.NONE.value}, {State.SKIPPED.value},"),
        ("due_runs", f"state = {State.SCHEDULED.value} "),
        ("find_run", f"h.state > {State.RUNNING.value} "),
        ("list_runs", f"h.state > {State.RUNNING.value}\n"),
        ("list_attempts", f"r.state = {State.RUNNING.value} "),
        ("list_attempts", f"h.ending <> {Ending.NONE.value} "),
    ],
)
def test_a_number_in_a_statement_means_what_the_domain_says(name: str, phrase: str):
    assert phrase in SQL[name]


async def test_the_status_of_a_job_that_ended_is_the_status_of_its_runs_state(world: World):
    job = await world.job_id(scheduleAt="2036-01-01T00:00:00Z")
    for state in (State.SUCCEEDED, State.DEAD, State.CANCELLED, State.UNKNOWN, State.DISCARDED):
        await world.sql(
            "INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state)"
            " SELECT run, id, now(), now(), clock_timestamp(), tenant, spec, 1, 1, $2 FROM job WHERE id = $1",
            job,
            state,
        )
        assert await world.status(job) == STATUS_OF[state]


async def test_one_run_per_job_and_instant_is_kept_by_an_index(world: World):
    insert = (
        "INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, tenant, spec, state, payload)"
        " VALUES ($1, 1, 0, '2026-01-01', now(), now(), 1, 1, 1, '')"
    )
    await world.sql(insert, 1)
    with pytest.raises(asyncpg.UniqueViolationError):
        await world.sql(insert, 2)


async def test_a_schedule_never_stands_before_its_cursor(world: World):
    await world.job_id(every="PT24H")
    with pytest.raises(asyncpg.CheckViolationError):
        await world.sql("UPDATE schedule SET next_at = cursor")


def test_priorities_fit_the_column_that_keeps_them():
    assert sorted(Priority) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("number", [0, 1, 1_023, 1_024, 123_456_789])
async def test_the_database_mints_ids_as_the_domain_does(world: World, number: int):
    at = datetime(2026, 11, 16, 6, 20, 7, 123_456, tzinfo=UTC)
    assert await world.value("SELECT first_of_block($1, $2)", number, at) == mint(Block(number, at), 1)[0]
