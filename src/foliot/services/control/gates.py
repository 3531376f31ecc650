"""A job's gate: closed for a while, opened again, or closed for good; inside the transaction of a call."""

from collections.abc import Callable, Iterable
from datetime import datetime

from foliot.domain.condition import Condition
from foliot.domain.errors import Conflict
from foliot.domain.ids import encode
from foliot.domain.job import Draft, Gate
from foliot.services.control.finding import lock, lock_alone, read, read_sealed
from foliot.store import jobs, stopping, wiring
from foliot.store.audit import note
from foliot.store.database import Connection, Row
from foliot.store.jobs import Standing
from foliot.store.reading import JobRow
from foliot.store.vault import Vault

Redraft = Callable[[JobRow], Draft]


async def pause(connection: Connection, tenant: int, job: int) -> Iterable[str]:
    """Close the gate; the channels on which workers hear that they are to hand back what they have not begun."""
    standing = await lock(connection, tenant, job)
    _refuse_if_over(standing)
    if standing.gate is not Gate.OPEN:
        return ()
    await jobs.set_gate(connection, tenant, job, Gate.PAUSED, standing.now)
    stopped = await wiring.fired_with(connection, job)
    await jobs.unsubscribe(connection, stopped, standing.now, closed=True)
    await jobs.block_runs(connection, job, standing.run)
    await _note_gate(connection, job, standing.gate, Gate.PAUSED)
    return await stopping.recall_held(connection, job)


async def resume(connection: Connection, vault: Vault, tenant: int, before: JobRow, draft_of: Redraft) -> bool:
    """Open the gate again, if it was closed; not if somebody else has changed the job since it was read."""
    locked = await jobs.lock_schedules(connection, [before.schedule])
    standing = await lock_alone(connection, tenant, before.id)
    if standing.version != before.version:
        return False
    _refuse_if_over(standing)
    if standing.gate is Gate.PAUSED:
        # As in an edit: what the schedule has dealt with was paused, even if the clock was set back since.
        now = max([standing.now, *(row["cursor"] for row in locked.values())])
        await jobs.record_pause(connection, [] if before.parents else [before.id], now)
        await jobs.set_gate(connection, tenant, before.id, Gate.OPEN, now)
        if before.schedule is not None and not before.parents:
            await _fire_again(connection, vault, tenant, before, draft_of, locked.values(), now)
        await jobs.unblock_runs(connection, before.id, standing.run)
        await _note_gate(connection, before.id, standing.gate, Gate.OPEN)
    return True


async def _fire_again(
    connection: Connection,
    vault: Vault,
    tenant: int,
    before: JobRow,
    draft_of: Redraft,
    locked: Iterable[Row],
    now: datetime,
) -> None:
    """Give a job its instants again, from where its pause ended: asked anew, an instant would lie between the two.

    Of a graph all have theirs, if none of its roots is paused any more.
    """
    if before.head is None:
        await jobs.subscribe(connection, {before.id: draft_of(before)}, locked, now)
    elif await wiring.is_open(connection, before.head):
        lead = await read(connection, vault, tenant, before.head)
        await jobs.subscribe(connection, {lead.id: draft_of(lead)}, locked, now)
        await wiring.lead(connection, [lead.id], now)


async def cancel(connection: Connection, tenant: int, job: int, condition: Condition) -> Iterable[str]:
    """Close the gate for good, and end what waits; the channels on which workers hear that they are to stop."""
    row = await read_sealed(connection, tenant, job)
    await wiring.leave(connection, tenant, row)
    standing = await lock(connection, tenant, job)
    condition.check(standing.version)
    if standing.gate is Gate.CANCELLED:
        return ()
    await wiring.forget(connection, row, standing.now)
    await jobs.record_pause(connection, [job], standing.now)
    await jobs.set_gate(connection, tenant, job, Gate.CANCELLED, standing.now)
    await jobs.unsubscribe(connection, [job], standing.now, closed=True)
    await jobs.cancel_runs(connection, job, standing.run)
    await _note_gate(connection, job, standing.gate, Gate.CANCELLED)
    return await stopping.stop_held(connection, job)


async def _note_gate(connection: Connection, job: int, before: Gate, after: Gate) -> None:
    await note(connection, encode("job", job), {"gate": before.name.lower()}, {"gate": after.name.lower()})


def _refuse_if_over(standing: Standing) -> None:
    if standing.gate is Gate.CANCELLED or standing.ended_state is not None:
        raise Conflict("the job is over", "create a new one")
