"""S24: of all changes that were meant for one version of a job, one is made at most."""

from collections import defaultdict
from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.finding import Finding
from chaos.records import Operation, Outcome

STALE = 412


def lost_updates(case: Case) -> Iterator[Finding]:
    made: dict[tuple[str | None, int | None], list[Operation]] = defaultdict(list)
    for each in meant(case):
        if each.outcome is Outcome.OK:
            made[each.job, each.match].append(each)
            version = (each.answer or {})["version"]
            if version <= (each.match or 0):
                yield _about(each, "went back", f"was changed from version {each.match}, and is at {version}")
    for (_, version), edits in made.items():
        if len(edits) > 1:
            numbers = " and ".join(str(each.number) for each in edits)
            yield _about(edits[-1], "lost update", f"version {version} was changed by operations {numbers}")


def meant(case: Case) -> Iterator[Operation]:
    """Changes that named a version."""
    return (each for each in case.evidence.operations if each.match is not None)


def edits(case: Case) -> dict[str, int]:
    found = list(meant(case))
    return {
        "changes of the version that was meant": sum(each.outcome is Outcome.OK for each in found),
        "changes refused as stale": sum(each.status == STALE for each in found),
    }


def _about(each: Operation, rule: str, message: str) -> Finding:
    return Finding(check="S24", rule=rule, message=message, job=each.job, at=each.completed)
