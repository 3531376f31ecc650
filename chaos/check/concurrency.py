"""S9 and S10: never more at once than the limit of a key, and first come first served where the limit is one."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from chaos.check.case import Case
from chaos.check.facts import Job, Run
from chaos.check.finding import Finding
from chaos.oracle import seconds
from chaos.records import Effect

Key = tuple[str, str]


class Execution(msgspec.Struct, eq=False):
    """One attempt under a key: from its start to when it counted no more, and to when it really stopped."""

    run: Run
    start: Effect
    counted: float
    stopped: float


def limits_broken(case: Case) -> Iterator[Finding]:
    """S9: a sweep over all attempts of each key."""
    for (tenant, key), runs in _by_key(case).items():
        limit = _limit(case, runs)
        if limit is None:
            continue
        executions = [_execution(case, run, start) for run in runs for start in run.starts]
        yield from _sweep(case, f"{tenant}/{key}", limit, executions)
        yield from _zombies(case, f"{tenant}/{key}", executions)
        if limit == 1:
            yield from _out_of_order(case, f"{tenant}/{key}", runs)


def overlaps(case: Case) -> Iterator[Finding]:
    """S9: two scheduled runs at once of a job that skips while one is going."""
    for job in case.jobs.values():
        if not all(each.recurring and each.overlap == "skip" for each in job.definitions):
            continue
        yield from _overlaps_of(case, job)


def _overlaps_of(case: Case, job: Job) -> Iterator[Finding]:
    if job.unsure_by_hand:  # one of its runs may be by hand, and nobody knows which
        return
    ran = sorted((run.starts[0].at, run.id, run) for run in job.runs if run.starts and run.id not in job.by_hand)
    until, holder = 0.0, ""
    for began, _, run in ran:
        if began < until - case.bounds.clock:
            yield _about(run, "S9", "overlap", f"began {until - began:.3f} s before the end of {holder}", began)
        ended = _first_end(case, run)
        if ended is not None and ended > until:
            until, holder = ended, run.id


def _first_end(case: Case, run: Run) -> float | None:
    """When it left its place to the next. Overlap does not apply to a dead one that is let go on or given up later."""
    back = case.replays(run)
    if not back and (run.row or {}).get("state") != "discarded":
        return run.moment("finishedAt")
    ends = [seconds(each["finishedAt"]) for each in run.attempts if each["startedAt"] and each["finishedAt"]]
    return max((end for end in ends if not back or end <= back[0]), default=None)


def _by_key(case: Case) -> dict[Key, list[Run]]:
    keys: dict[Key, list[Run]] = defaultdict(list)
    for run in case.runs.values():
        if run.starts and (key := run.starts[0].concurrency_key) is not None:
            keys[run.starts[0].tenant, key].append(run)
    return keys


def _limit(case: Case, runs: list[Run]) -> int | None:
    limits = [each["concurrency"]["limit"] for run in runs for each in case.bodies_of(run) if each.get("concurrency")]
    return max(limits, default=None)


def _execution(case: Case, run: Run, start: Effect) -> Execution:
    """Without an end an attempt is over with the death of its worker, or a lease after its last sign of life."""
    ended = next((end.at for end in run.ends if end.nonce == start.nonce and end.fence == start.fence), None)
    if ended is None:
        worker = case.worker_of(start)
        killed = None if worker is None else case.faults.death(worker, start.at)
        beats = [beat.at for beat in run.beats if beat.fence == start.fence]
        ended = killed or max([start.at, *beats]) + case.bounds.lease
    overtaken = [each.at for each in run.starts if each.fence > start.fence]
    row = run.attempt_of(start.fence)
    if row is not None and row["status"] == "lost" and row["finishedAt"] is not None:
        overtaken.append(seconds(row["finishedAt"]))
    return Execution(run, start, min([ended, *overtaken]), ended)


def _sweep(case: Case, key: str, limit: int, executions: list[Execution]) -> Iterator[Finding]:
    edges = [(each.counted - case.bounds.clock, 0, each) for each in executions]
    edges += [(each.start.at, 1, each) for each in executions if each.counted - case.bounds.clock > each.start.at]
    starting = {id(each) for _, is_start, each in edges if is_start}
    depth = 0
    for at, is_start, each in sorted(edges, key=lambda edge: edge[:2]):
        if id(each) in starting:
            depth += 1 if is_start else -1
        if is_start and depth > limit:
            message = f"made {depth} at once under the key {key}, whose limit is {limit}"
            yield _about(each.run, "S9", "limit", message, at)


def _zombies(case: Case, key: str, executions: list[Execution]) -> Iterator[Finding]:
    for each in executions:
        beyond = each.stopped - each.counted
        if beyond > case.bounds.guardian and any(
            other.run is not each.run and other.start.at < each.stopped and other.counted > each.counted
            for other in executions
        ):
            message = f"went on for {beyond:.1f} s under the key {key} after it had been fenced out"
            yield _about(each.run, "S9", "zombie", message, each.counted)


def _out_of_order(case: Case, key: str, runs: list[Run]) -> Iterator[Finding]:
    """S10: one that was waiting was overtaken by one that came later."""
    first = sorted(runs, key=lambda run: run.starts[0].at)
    for before, after in pairwise(first):
        if (after.scheduled or 0.0, after.id) < (before.scheduled or 0.0, before.id):
            waiting = max(after.scheduled or 0.0, after.moment("createdAt") or 0.0)
            if waiting < before.starts[0].at - case.bounds.clock:
                message = f"was overtaken under the key {key} by {before.id}, which came later"
                yield _about(after, "S10", "order", message, after.starts[0].at)


def _about(run: Run, check: str, rule: str, message: str, at: float) -> Finding:
    return Finding(check=check, rule=rule, message=message, run=run.id, job=run.job, at=at)
