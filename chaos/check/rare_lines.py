"""How often somebody really had to wait for somebody else."""

from bisect import bisect_right, insort

from chaos.check.case import Case
from chaos.check.concurrency import stood_in_line
from chaos.check.facts import Job, Run
from chaos.check.lines import Line, left_place, lines
from chaos.records import Outcome


def waited(case: Case) -> dict[str, int]:
    all_lines = list(lines(case))
    own = [line for line in all_lines if not line.is_tenants]
    changed = (each for each in case.evidence.operations if each.kind == "changeJob" and each.outcome is Outcome.OK)
    skips = [run for job in case.jobs.values() if _queues_one(job) for run in job.runs if run.status == "skipped"]
    return {
        "waited for one of its key": sum(_waited(case, line) for line in own if _keyed(line)),
        "waited for one of its job": sum(_waited(case, line) for line in own if not _keyed(line)),
        "waited for one of its tenant": sum(_waited(case, line) for line in all_lines if line.is_tenants),
        "kept its place for a retry": sum(_kept(case, line) for line in own if line.is_strict),
        "skipped while one waited": len(skips),
        "limits changed": sum("concurrency" in (each.body or {}) for each in changed),
    }


def _queues_one(job: Job) -> bool:
    return any(each.overlap == "queueOne" for each in job.definitions)


def _keyed(line: Line) -> bool:
    return line.places[0].run.starts[0].concurrency_key is not None if line.places else False


def _waited(case: Case, line: Line) -> int:
    """Runs that stood in line while one of those before was not through, and began when it was."""
    count, left = 0, list[float]()
    for run in line.in_order:
        before = bisect_right(left, run.starts[0].at + case.bounds.clock)
        count += before > 0 and left[before - 1] > stood_in_line(case, run)
        insort(left, left_place(case, run) or 0.0)
    return count


def _kept(case: Case, line: Line) -> int:
    """Runs that were tried again while somebody else stood in line."""
    tried: list[Run] = [run for run in line.in_order if len(run.starts) > 1]
    return sum(
        any(stood_in_line(case, other) < run.starts[1].at < other.starts[0].at for other in line.in_order)
        for run in tried
    )
