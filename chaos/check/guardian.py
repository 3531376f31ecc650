"""S9: what runs in a process of its own does not outlive the lease of a supervisor that stands still."""

from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding

_STILL = frozenset({"stop", "stopSupervisor"})


def outlived(case: Case, run: Run) -> Iterator[Finding]:
    """The lease was renewed before the stop for the last time. When it has ended, others may begin the same."""
    for start in run.starts:
        if not start.isolated:
            continue
        last = max((each.at for each in (*run.beats, *run.ends) if each.nonce == start.nonce), default=start.at)
        for fault in case.faults.upon(case.worker_of(start)):
            if fault.kind not in _STILL or not start.at <= fault.began <= last:
                continue
            over = [each.at for each in run.starts if each.fence > start.fence and each.at > fault.began]
            if fault.ended - fault.began > case.bounds.lease:
                over.append(fault.began + case.bounds.lease)
            if over and (beyond := last - min(over)) > case.bounds.guardian:
                message = f"was alive {beyond:.1f} s after the lease of its stopped supervisor had ended"
                yield Finding(check="S9", rule="outlived", message=message, run=run.id, job=run.job, at=last)
