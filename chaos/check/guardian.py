"""S9: what must not outlive its worker's lease does not: captives of one that stands still, and what is to stop."""

from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.records import Effect, Fault

_STILL = frozenset({"stop", "stopSupervisor"})
_AWAY = frozenset({"partition", "stall"})


def outlived(case: Case, run: Run) -> Iterator[Finding]:
    """The lease was renewed before the stop for the last time. When it has ended, others may begin the same."""
    for start in run.starts:
        # Most runs are over before anything happens to their worker: that is looked at first.
        struck = [each for each in case.faults.upon(case.worker_of(start)) if each.began >= start.at]
        if not struck:
            continue
        last = max((each.at for each in (*run.beats, *run.ends) if each.nonce == start.nonce), default=start.at)
        for fault in struck:
            if fault.began > last or not fault.target.startswith("worker") or not _ends_with(case, run, start, fault):
                continue
            over = [each.at for each in run.starts if each.fence > start.fence and each.at > fault.began]
            if fault.ended - fault.began > case.bounds.lease:
                over.append(fault.began + case.bounds.lease)
            if fault.kind == "stop":  # they stood still with their worker, and could be ended no sooner
                over = [max(each, fault.ended) for each in over]
            if over and (beyond := last - min(over)) > case.bounds.guardian:
                message = f"was alive {beyond:.1f} s after the lease of its worker had ended"
                yield Finding(check="S9", rule="outlived", message=message, run=run.id, job=run.job, at=last)


def stopped_in_time(case: Case, run: Run) -> int:
    """Attempts that were to stop when their worker was cut off, and did not come to their end."""
    over = {end.nonce for end in run.ends}
    cut_short = [start for start in run.starts if start.nonce not in over]
    if not cut_short or run.starts[0].isolated or not _stops(case, run):
        return 0
    return sum(
        fault.kind in _AWAY and start.at <= fault.began and fault.ended - fault.began > case.bounds.lease
        for start in cut_short
        for fault in case.faults.upon(case.worker_of(start))
    )


def _ends_with(case: Case, run: Run, start: Effect, fault: Fault) -> bool:
    """Whether an attempt must not go on when its worker has lost its lease by this."""
    return fault.kind in (_STILL if start.isolated else _AWAY) and (start.isolated or _stops(case, run))


def _stops(case: Case, run: Run) -> bool:
    """Whether its owner wants it stopped when its worker is cut off, as is usual for at-most-once."""
    bodies = case.bodies_of(run)
    usual = (each.get("onDisconnect") or ("stop" if each.get("delivery") == "atMostOnce" else "") for each in bodies)
    return bool(bodies) and all(each == "stop" for each in usual)
