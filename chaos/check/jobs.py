"""Which jobs there are, whose they are, and what was done to them."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from chaos.check.calls import apart, merged
from chaos.check.facts import Call, Job
from chaos.records import Operation, Outcome
from chaos.timeline import CHANGES, Timeline

if TYPE_CHECKING:
    from chaos.check.case import Case


def read_jobs(case: "Case") -> None:
    """Acknowledged jobs, and those in the dump that an unanswered call explains; the rest are phantoms."""
    operations: dict[str, list[Operation]] = defaultdict(list)
    for name, call, answered in _acknowledged(case.calls):
        case.jobs[name] = Job(name, call.first.tenant)
        operations[name].append(merged(call, answered))
    for each in case.evidence.operations:
        if each.job is not None and each.kind in CHANGES:
            operations[each.job].append(each)
    _read_dump(case, operations)
    for name, job in case.jobs.items():
        job.operations = operations[name]
        job.timeline = Timeline(job.operations, case.bounds.linger)


def _acknowledged(calls: list[Call]) -> Iterator[tuple[str, Call, Operation]]:
    for call in chain.from_iterable(map(apart, calls)):
        answered = call.answered
        if call.first.kind == "createJob" and answered is not None and answered.answer is not None:
            yield answered.answer["jobId"], call, answered


def _first_unsure(call: Call) -> Operation:
    """Of a call that was never answered the first try that may have been heard: some before it certainly were not."""
    return next(each for each in call.operations if each.outcome is Outcome.UNKNOWN)


def _read_dump(case: "Case", operations: dict[str, list[Operation]]) -> None:
    unsure: dict[tuple[str, Any], list[Call]] = defaultdict(list)
    for call in chain.from_iterable(map(apart, case.calls)):
        if call.first.kind == "createJob" and call.unsure:
            unsure[call.first.tenant, (call.first.body or {}).get("name")].append(call)
    for tenant, row in ((tenant, row) for tenant, rows in case.evidence.dump.jobs.items() for row in rows):
        job = case.jobs.get(row["jobId"])
        if job is None:
            if not (waiting := unsure[tenant, row["name"]]):
                case.phantom_jobs.append(row)
                continue
            job = case.jobs[row["jobId"]] = Job(row["jobId"], tenant)
            operations[job.id].append(_first_unsure(waiting.pop()))
        job.row = row
        if {tenant, row["tenant"]} != {job.tenant}:
            case.misplaced.append((tenant, job.id))
