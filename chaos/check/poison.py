"""S7: whoever kills its workers is soon kept apart from them, kills only itself then, and is given up in the end."""

from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.records import POISON

WORKERS = 3
"""Workers that one run may kill before it runs alone."""
CRASHES = 3
"""Processes of its own that it may kill then, each time that somebody lets it go on."""


def poisonous(case: Case, run: Run) -> bool:
    bodies = case.bodies_of(run)
    return bool(bodies) and all(each.get("handler") == POISON for each in bodies)


def poisoned_wrongly(case: Case, run: Run) -> Iterator[Finding]:
    if len(run.starts) <= WORKERS or not poisonous(case, run):
        return
    alone = [start for start in run.starts if start.isolated]
    beside = [start for start in run.starts if not start.isolated]
    if len(beside) > WORKERS:
        message = f"killed {len(beside)} workers, and {WORKERS} are enough to know it"
        yield Finding(check="S7", rule="poison", message=message, run=run.id, job=run.job, at=beside[-1].at)
    # What is lost with its worker, for whatever reason, is none of its own crashes.
    struck = [start for start in alone if case.faults.held(case.worker_of(start), start.at, start.at)]
    if len(alone) - len(struck) > CRASHES * (1 + len(case.replays(run))):
        message = f"began {len(alone)} times alone, and {CRASHES} crashes are enough for quarantine"
        yield Finding(check="S7", rule="quarantine", message=message, run=run.id, job=run.job, at=alone[-1].at)


def quarantines(case: Case) -> dict[str, int]:
    given_up = {"failed", "discarded"}
    runs = (run for run in case.runs.values() if run.submission is not None and run.status in given_up)
    return {"quarantines": sum(poisonous(case, run) and any(each.isolated for each in run.starts) for run in runs)}
