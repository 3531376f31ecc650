"""How often somebody really had to wait for somebody else."""

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator

from chaos.check.case import Case
from chaos.check.concurrency import stood_in_line
from chaos.check.facts import Job, Run
from chaos.check.lines import Line, left_place, lines
from chaos.records import Outcome


def waited(case: Case) -> dict[str, int]:
    all_lines = list(lines(case))
    own = [line for line in all_lines if not line.is_tenants]
    of_keys = _waiters(case, (line for line in own if _keyed(line)))
    of_jobs = _waiters(case, (line for line in own if not _keyed(line)))
    of_tenants = _waiters(case, (line for line in all_lines if line.is_tenants))
    of_graphs = [run for name in case.graphs.needs for run in case.jobs[name].runs if run.starts]
    changed = (each for each in case.evidence.operations if each.kind == "changeJob" and each.outcome is Outcome.OK)
    skips = [run for job in case.jobs.values() if _queues_one(job) for run in job.runs if run.status == "skipped"]
    return {
        "waited for one of its key": len(of_keys),
        "waited for one of its job": len(of_jobs),
        "waited for one of its tenant": len(of_tenants),
        "HTTP targets that waited for one of their key": _on_the_web(case, of_keys),
        "HTTP targets that waited for one of their job": _on_the_web(case, of_jobs),
        "HTTP targets that waited for one of their tenant": _on_the_web(case, of_tenants),
        "HTTP targets that waited for their graph": _on_the_web(case, of_graphs),
        "kept its place for a retry": sum(_kept(case, line) for line in own if line.is_strict),
        "skipped while one waited": len(skips),
        "limits changed": sum("concurrency" in (each.body or {}) for each in changed),
    }


def _queues_one(job: Job) -> bool:
    return any(each.overlap == "queueOne" for each in job.definitions)


def _keyed(line: Line) -> bool:
    return line.places[0].run.starts[0].concurrency_key is not None if line.places else False


def _on_the_web(case: Case, runs: list[Run]) -> int:
    return sum(any(str(body.get("handler")).startswith("http:") for body in case.bodies_of(run)) for run in runs)


def _waiters(case: Case, found: Iterable[Line]) -> list[Run]:
    return [run for line in found for run in _waited(case, line)]


def _waited(case: Case, line: Line) -> Iterator[Run]:
    """Runs that stood in line while one of those before was not through, and began when it was."""
    left = list[float]()
    for run in line.in_order:
        before = bisect_right(left, run.starts[0].at + case.bounds.clock)
        if before > 0 and left[before - 1] > stood_in_line(case, run):
            yield run
        insort(left, left_place(case, run) or 0.0)


def _kept(case: Case, line: Line) -> int:
    """Runs that were tried again while somebody else stood in line."""
    tried: list[Run] = [run for run in line.in_order if len(run.starts) > 1]
    return sum(
        any(stood_in_line(case, other) < run.starts[1].at < other.starts[0].at for other in line.in_order)
        for run in tried
    )
