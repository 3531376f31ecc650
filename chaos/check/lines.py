"""Which runs must wait for each other, by what their owners wrote: lines of a key, of a job, of a tenant."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import msgspec

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.oracle import seconds
from chaos.records import QUEUES, Effect
from chaos.timeline import Gate


class Place(NamedTuple):
    """A run in a line, and how many its own definition lets go at once."""

    run: Run
    limit: int


class Execution(msgspec.Struct, eq=False):
    """One attempt under a limit: from its start to when it counted no more, and its last sign of life."""

    place: Place
    start: Effect
    counted: float
    stopped: float


class Line:
    """Runs that count together."""

    def __init__(self, name: str, places: list[Place], job: Job | None, *, is_tenants: bool) -> None:
        self.name = name
        self.places = places
        self.job = job
        self.is_tenants = is_tenants

    @property
    def is_strict(self) -> bool:
        """One after the other, in order; whoever waits for a retry keeps its place, unless its job was paused."""
        if self.is_tenants or any(place.limit > 1 for place in self.places):
            return False
        return self.job is None or not _was_paused(self.job)

    def executions(self, case: Case) -> list[Execution]:
        return [_execution(case, place, start) for place in self.places for start in place.run.starts]

    @cached_property
    def in_order(self) -> list[Run]:
        """As they began."""
        return sorted((place.run for place in self.places), key=lambda run: run.starts[0].at)


def lines(case: Case) -> Iterator[Line]:
    """Those of keys and jobs, of instants that wait for each other, of tenants; only runs that began are in them."""
    found: dict[tuple[str, str, str], list[Place]] = defaultdict(list)
    crowds: dict[str, int] = case.evidence.settings.get("crowds", {})
    crowded: dict[str, list[Place]] = {tenant: [] for tenant in crowds}
    for run in case.runs.values():
        if not run.starts:
            continue
        tenant = run.starts[0].tenant
        if tenant in crowded:
            crowded[tenant].append(Place(run, crowds[tenant]))
        if (limited := _limited(case, run)) is not None:
            scope, limit = limited
            found[tenant, scope, run.starts[0].concurrency_key or ""].append(Place(run, limit))
    for (tenant, scope, key), places in found.items():
        name = " ".join(filter(None, (tenant, scope, key)))
        yield Line(name, places, case.jobs.get(places[0].run.job or ""), is_tenants=False)
    for job in case.jobs.values():
        if all(each.recurring and each.overlap in QUEUES for each in job.definitions) and not job.unsure_by_hand:
            places = [Place(run, 1) for run in job.runs if run.starts and run.id not in job.by_hand]
            yield Line(f"{job.tenant} {job.id} of its instants", places, job, is_tenants=False)
    for tenant, places in crowded.items():
        yield Line(tenant, places, None, is_tenants=True)


def left_place(case: Case, run: Run) -> float | None:
    """When it left its place to the next; one that was let go on or given up later left it when it died."""
    if not case.replays(run) and (run.row or {}).get("state") != "discarded":
        return run.moment("finishedAt")
    # What came too late is dated when it came: the run had gone on without it.
    rows = [each for each in run.attempts if not each.get("lateResult")] or run.attempts
    own = [each for each in rows if each["startedAt"] and each["finishedAt"] and not case.turn_of(run, each)]
    return max((seconds(each["finishedAt"]) for each in own), default=None)


def _limited(case: Case, run: Run) -> tuple[str, int] | None:
    """Where it has to wait, and the highest limit that its definition may have had; None if it may have had none."""
    if run.submission is not None and run.submission.operation.kind != "runJob":
        body = run.submission.body
        limit = body.get("concurrency")
        return None if limit is None else (f"{body.get('queue', 'default')}/{body['handler']}", int(limit["limit"]))
    job = case.jobs.get(run.job or "")
    if job is None or not job.timeline.judged or all(each.concurrency is None for each in job.definitions):
        return None
    made = run.moment("createdAt") or run.starts[0].at
    standings = job.timeline.between(made - case.bounds.uncertainty, run.starts[0].at)
    limits = [None if each is None else each.definition.concurrency for each in standings]
    known = [limit for limit in limits if limit is not None]
    return (job.id, max(known)) if known and len(known) == len(limits) else None


def _execution(case: Case, place: Place, start: Effect) -> Execution:
    """Without an end an attempt is over with the death of its worker, or a lease after its last sign of life."""
    run = place.run
    ended = next((end.at for end in run.ends if end.nonce == start.nonce and end.fence == start.fence), None)
    alive = max([start.at, *(beat.at for beat in run.beats if beat.fence == start.fence)])
    worker = case.worker_of(start)
    killed = None if worker is None else case.faults.death(worker, start.at)
    over = [ended or killed or alive + case.bounds.lease]
    over += [each.at for each in run.starts if each.fence > start.fence]
    row = run.attempt_of(start.fence)
    if row is not None and row["finishedAt"] is not None:
        over.append(seconds(row["finishedAt"]))
    if row is None and (taken := run.moment("finishedAt")) is not None:
        # Its worker fell silent before it could tell of the start, and the run was ended when the lease was over.
        over += [taken] if taken >= alive + case.bounds.lease - case.bounds.heartbeat else []
    return Execution(place, start, min(over), alive if ended is None else ended)


def _was_paused(job: Job) -> bool:
    return any(each is not None and each.gate is Gate.PAUSED for found in job.timeline.possible for each in found)


def stood_still_until(case: Case, start: Effect, at: float) -> float:
    """When the worker of an attempt that showed itself `at` had last come back from standing still."""
    still = (
        fault.ended
        for fault in case.faults.upon(case.worker_of(start))
        if fault.kind in {"stop", "stopSupervisor"} and fault.began <= at
    )
    return max(still, default=0.0)
