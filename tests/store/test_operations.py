"""Operations in the schema: numbers that mean what the domain says, constraints that hold, plans that do not grow."""

import re

import asyncpg
import pytest

from filling import FIRST, begin, daily
from foliot.domain.ids import first_id_at
from foliot.domain.job import Gate
from foliot.domain.operation import OperationKind, OperationState
from foliot.domain.outcome import Ending
from foliot.domain.states import State
from foliot.store.statements import SQL
from operating import operator, settle_down
from plans import explain
from world import World

OPEN = f"({OperationState.PENDING.value}, {OperationState.RUNNING.value})"


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("insert_operation", f"VALUES ($1, $2, {OperationKind.BACKFILL.value}, "),
        ("instants_ended", f"state > {State.RUNNING.value}\n"),
        ("note_ended", f"h.state > {State.RUNNING.value}\n"),
        ("note_ended", f"LIMIT 1), {State.UNKNOWN.value})"),
        ("note_ended", f"state = {State.SUCCEEDED.value}) AS succeeded"),
        ("note_ended", f"state = {State.CANCELLED.value}) AS cancelled"),
        ("stop_orphans", f"SET state = {OperationState.CANCELLED.value}, "),
        ("stop_orphans", f"o.state IN {OPEN}"),
        ("stop_orphans", f"job.gate <> {Gate.CANCELLED.value})"),
        ("finish_operations", f"state = {OperationState.CANCELLED.value} THEN {OperationState.CANCELLED.value} WHEN"),
        (
            "finish_operations",
            f"THEN {OperationState.COMPLETED.value} ELSE {OperationState.FAILED.value} END",
        ),
        ("lock_to_feed", f"state IN {OPEN}"),
        ("hungry_backfills", f"o.state IN {OPEN}"),
        ("hungry_backfills", f"job.gate = {Gate.OPEN.value}\n"),
        ("hold_open_and_free", f"gate = {Gate.OPEN.value} "),
        ("feed", f"state = {OperationState.RUNNING.value},\n"),
        ("feed", f"WHEN NOT told.is_made THEN {State.SKIPPED.value} END"),
        ("cancel_operation", f"state = {OperationState.CANCELLED.value} "),
        ("with_waiting_runs", f"r.state <> {State.RUNNING.value}\n"),
        ("with_waiting_runs", f"o.state = {OperationState.CANCELLED.value}"),
        ("cancel_waiting_runs", f"state IN ({State.SCHEDULED.value}, {State.BLOCKED.value})"),
        ("cancel_waiting_runs", f"attempt, {Ending.NONE.value}, {State.CANCELLED.value}, "),
    ],
)
def test_a_number_in_a_statement_means_what_the_domain_says(name: str, phrase: str):
    assert phrase in SQL[name]


@pytest.mark.parametrize(("column", "known"), [("kind", OperationKind), ("state", OperationState)])
async def test_checks_let_through_what_the_domain_knows(world: World, column: str, known):
    text = await world.value(
        "SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid"
        " AND c.conkey = ARRAY[a.attnum]"
        " WHERE c.contype = 'c' AND c.conrelid = 'operation'::regclass AND a.attname = $1",
        column,
    )
    assert {int(number) for number in re.findall(r"\d+", text)} == set(known)


async def test_more_runs_under_way_than_allowed_cannot_be_written(world: World):
    operation = await begin(world, await daily(world), concurrency=2)
    for change in ("submitted = 3", "succeeded = 1", "skipped = 11", "submitted = 1, finished_at = now()"):
        with pytest.raises(asyncpg.CheckViolationError):
            await world.sql(f"UPDATE operation SET {change} WHERE id = $1", operation)


@pytest.mark.parametrize("statistics", ["none", "fresh"])
async def test_a_round_reads_what_is_under_way_and_not_what_is_done_or_to_come(world: World, statistics: str):
    await world.sql("ALTER TABLE operation_item SET (autovacuum_enabled = off)")
    operation = await begin(world, await world.job_id(every="PT1S"), until=FIRST.replace(hour=5), concurrency=20)
    async with operator(world) as duty:
        await settle_down(duty)
        line = duty._line
        await world.sql("UPDATE operation_item SET run = -1, state = 4 WHERE at > $1", FIRST.replace(hour=1))
        if statistics == "fresh":
            await world.sql("ANALYZE operation_item")
        noting = await explain(line, "note_ended", [operation])
        assert noting.rows_read("operation_item") <= 3 * 20
        assert noting.rows_read("run") <= 3 * 20
        assert noting.whole_scans() == set()
        worker = await world.worker()
        await worker.settle(await worker.claim())
        await duty._account()
        feeding = await explain(
            line, "feed", [operation], [20], first_id_at(FIRST), [1], [world.tenant], [0], [1], [20]
        )
        assert feeding.rows_read("operation_item") <= 3 * 20
        assert feeding.rows_read("run") <= 3 * 20
        assert feeding.whole_scans() == set()
