"""Definitions of graphs: who depends on whom, and which of them fire together."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from foliot.domain.errors import Conflict
from foliot.domain.graph import Edge
from foliot.domain.job import Draft, Kind
from foliot.domain.misfire import USUAL
from foliot.domain.wiring import Member, Place, arrange, refuse_cycles
from foliot.store import jobs
from foliot.store.database import Connection
from foliot.store.edges import (
    end_edges,
    follow_head,
    lock_graphs,
    member_of,
    place,
    read_graphs,
    resolve,
    resubscribe,
    tie,
    write_edges,
)
from foliot.store.reading import JobRow
from foliot.store.statements import SQL


async def replace_node(connection: Connection, old: int, new: int) -> None:
    """The only run of a one-time job makes way for another: those that waited for it wait for that one."""
    await connection.execute(SQL["replace_node"], old, new)


async def adopt_node(connection: Connection, run: int) -> None:
    """The run has been written: if others wait for it, it is tied."""
    await connection.execute(SQL["take_from_timer"], run)
    await connection.execute(SQL["tie_node"], run)


async def leave(connection: Connection, tenant: int, row: JobRow) -> None:
    """Take a job that is about to be cancelled out of its graph, or refuse: what others wait for cannot just go.

    One-time jobs may: their run ends as cancelled, and those that wait for it are told.
    """
    if row.kind == Kind.ONE_TIME or row.head is None:
        return
    await lock_graphs(connection, tenant)
    if children := await connection.fetch(SQL["children"], row.id):
        named = ", ".join(repr(each["name"]) for each in children[:5]) + (" and others" if len(children) > 5 else "")
        raise Conflict(f"other jobs depend on it: {named}", "cancel those first, or change their dependsOn")


async def forget(connection: Connection, row: JobRow, now: datetime) -> None:
    """A cancelled job is in no graph any more."""
    if row.head is not None:
        await end_edges(connection, [row.id], now)
        await place(connection, {row.id: Place(Kind(row.kind), row.schedule, None)})


async def fired_with(connection: Connection, job: int) -> list[int]:
    """Whose instants end when this job is paused: its own; of the root of a graph, those of all; of others, none."""
    return await connection.fetchval(SQL["fired_with"], job)  # type: ignore[no-any-return]


async def is_open(connection: Connection, head: int) -> bool:
    """Whether no root of the graph is paused."""
    return await connection.fetchval(SQL["is_open"], head)  # type: ignore[no-any-return]


async def lead(connection: Connection, heads: Sequence[int], now: datetime) -> None:
    """The first roots of graphs have moved to other schedules: the others go with them."""
    if heads:
        moved = [row["id"] for row in await connection.fetch(SQL["go_along"], heads)]
        await jobs.unsubscribe(connection, moved, now, closed=False)
        await follow_head(connection, moved, now)


class Plan(NamedTuple):
    """What a call makes of jobs that depend on others, checked before anything is written."""

    drafts: list[Draft]
    """As they are to be stored: a job with parents has no schedule of its own."""
    schedules: list[int | None]
    before: dict[int, Member]
    """Those that were there already."""
    places: dict[int, Place]
    edges: list[Edge]
    """Those that are new."""
    shared: Sequence[int] = ()
    """Other roots, which share the trigger that is changed."""

    def schedules_of_all(self) -> set[int]:
        found = {each.schedule for each in self.before.values()} | {each.schedule for each in self.places.values()}
        return {each for each in found if each is not None}

    def moved(self) -> dict[int, Place]:
        """Those that were there already and belong elsewhere now."""
        return {
            job: each
            for job, old in self.before.items()
            if (each := self.places[job]) != Place(each.kind, old.schedule, old.head)
        }


async def find_parents(connection: Connection, tenant: int, drafts: Sequence[Draft]) -> None:
    """Raise the error that `plan_new` would, if it is that a parent is not there, or that they wait in a circle.

    Nobody depends yet on what is new, so a circle is one of the drafts alone.
    """
    numbers = range(-len(drafts), 0)
    edges = await _edges_to(connection, tenant, numbers, drafts)
    refuse_cycles(edges, {job: draft.key or draft.name for job, draft in zip(numbers, drafts, strict=True)})


async def _edges_to(connection: Connection, tenant: int, numbers: Sequence[int], drafts: Sequence[Draft]) -> list[Edge]:
    needs = {job: draft.depends_on for job, draft in zip(numbers, drafts, strict=True)}
    own = {draft.key: job for job, draft in zip(numbers, drafts, strict=True) if draft.key is not None}
    where = {job: f"jobs[{index}]." if len(drafts) > 1 else "" for index, job in enumerate(numbers)}
    return await resolve(connection, tenant, needs, own, where)


async def plan_new(
    connection: Connection,
    tenant: int,
    numbers: Sequence[int],
    drafts: Sequence[Draft],
    schedules: Sequence[int | None],
) -> Plan:
    """Where new jobs belong, or an error that says why they cannot be."""
    await lock_graphs(connection, tenant)
    edges = await _edges_to(connection, tenant, numbers, drafts)
    known = set(numbers)
    wired = await read_graphs(connection, tenant, {edge.parent for edge in edges} - known)
    new = {job: member_of(job, draft, at) for job, draft, at in zip(numbers, drafts, schedules, strict=True)}
    hanging = {node for edge in edges for node in edge[:2]}
    members = wired.members | {job: each for job, each in new.items() if job in hanging}
    places = arrange(members, [*wired.edges, *edges])
    children = {edge.child for edge in edges}
    placed = [
        (placed_draft(draft, places[job]), places[job].schedule) if job in children else (draft, at)
        for job, draft, at in zip(numbers, drafts, schedules, strict=True)
    ]
    return Plan([draft for draft, _ in placed], [at for _, at in placed], wired.members, places, edges)


def placed_draft(draft: Draft, its: Place) -> Draft:
    """A draft of a job with parents: what it says about time beyond its own instant is the graph's to say."""
    timing = {name: value for name, value in draft.timing.items() if its.kind is Kind.ONE_TIME and name == "scheduleAt"}
    return msgspec.structs.replace(
        draft,
        follows=its.kind,
        timing=timing,
        recurrence=None,
        not_before=None,
        ends_at=None,
        max_runs=None,
        catch_up=USUAL,
        jitter=timedelta(),
        calendar=None,
    )


async def write_new(connection: Connection, plan: Plan, runs: Mapping[int, int | None]) -> None:
    """Note where everybody belongs, and give instants from now on to those that belong elsewhere than before.

    The new jobs are stored, and nobody has subscribed for them yet; `runs` are those of the one-time jobs among them.
    """
    moved = plan.moved()
    if moved:
        locked = await jobs.lock_schedules(connection, plan.schedules_of_all())
        await connection.fetch(SQL["lock_members"], list(moved))
        now = max([await jobs.clock(connection), *(row["cursor"] for row in locked.values())])
    await place(connection, {job: each for job, each in plan.places.items() if job in moved or job not in plan.before})
    await write_edges(connection, plan.edges)
    if moved:
        await resubscribe(connection, plan.before, moved, now)
    await tie_all(connection, plan, runs)


async def tie_all(connection: Connection, plan: Plan, runs: Mapping[int, int | None]) -> None:
    """Let the runs of one-time jobs that are new or have another run wait for those of their parents."""
    every = {job: each.run for job, each in plan.before.items()} | dict(runs)
    await tie(connection, [edge for edge in plan.edges if plan.places[edge.child].kind is Kind.ONE_TIME], every)


async def plan_change(connection: Connection, tenant: int, before: JobRow, draft: Draft, schedule: int | None) -> Plan:
    """Where a job that is changed belongs, and all that hang together with it, or an error that says why it cannot be.

    What is changed about the trigger of a graph at one of its roots is changed at all.
    """
    if before.head is None and not before.parents and not draft.depends_on:
        return Plan([draft], [schedule], {}, {}, [])
    await lock_graphs(connection, tenant)
    edges = await resolve(connection, tenant, {before.id: draft.depends_on}, {}, {before.id: ""})
    wired = await read_graphs(connection, tenant, {before.id, *(edge.parent for edge in edges)})
    old = wired.members[before.id]
    kept = [edge for edge in wired.edges if edge.child != before.id]
    mine = member_of(before.id, draft, schedule)._replace(gate=old.gate, head=old.head, run=old.run)
    members = {**wired.members, before.id: mine}
    inner = {edge.child for edge in wired.edges}
    shared = [
        each.id
        for each in wired.members.values()
        if each.head is not None and each.head == old.head and each.id != old.id
        if not ({each.id, old.id} & inner) and not edges
    ]
    for each in shared:
        members[each] = members[each]._replace(schedule=schedule, terms=mine.terms, own_kind=mine.own_kind)
    places = arrange(members, [*kept, *edges])
    final = placed_draft(draft, places[before.id]) if edges else draft
    return Plan([final], [places[before.id].schedule], wired.members, places, edges, shared)


async def write_change(connection: Connection, plan: Plan, changed: jobs.Definition, now: datetime) -> None:
    """Note where everybody belongs after the change of one job, whose row says so already; the schedules are locked.

    Gives the instants after `now` to those others that belong elsewhere than before. Its own are still to be given.
    """
    job, _, draft, _, run = changed
    if run is not None:
        await adopt_node(connection, run)
    if not plan.places:
        return
    others = {each: its for each, its in plan.moved().items() if each != job}
    await connection.fetch(SQL["lock_members"], [*others, *plan.shared])
    await place(connection, {**others, job: plan.places[job]})
    await end_edges(connection, [job], now)
    await write_edges(connection, plan.edges, now)
    if plan.shared:
        await connection.execute(SQL["share_timing"], plan.shared, jobs.as_json(draft.timing), draft.max_runs)
        await jobs.unsubscribe(connection, plan.shared, now, closed=False)
    await resubscribe(
        connection, plan.before, {each: its for each, its in others.items() if each not in plan.shared}, now
    )
    await tie_all(connection, plan, {job: run})
