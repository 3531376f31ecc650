"""S35: a secret that a handler was given is in nothing that is kept of its run, whatever the handler says."""

from collections.abc import Iterator

import msgspec

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.records import CONFIDED

_SECRET = CONFIDED.encode()


def let_out(case: Case) -> Iterator[Finding]:
    for run in entrusted(case):
        if _SECRET in msgspec.json.encode([run.row, run.attempts]):
            message = "shows a secret that its handler was given"
            yield Finding(check="S35", rule="shown", message=message, run=run.id, job=run.job)
    for table, count in case.evidence.dump.let_out.items():
        yield Finding(check="S35", rule="stored", message=f"a secret can be read in {count} rows of {table}")
    for log, count in case.evidence.overheard.items():
        yield Finding(check="S35", rule="logged", message=f"a secret can be read in {count} lines of the log of {log}")


def entrusted(case: Case) -> Iterator[Run]:
    """Acknowledged runs whose handlers are given a secret, and say it."""
    for run in case.runs.values():
        payload = None if run.submission is None else run.submission.body.get("payload")
        if isinstance(payload, dict) and "secret" in payload:
            yield run


def indiscretions(case: Case) -> dict[str, int]:
    ended = [run.status for run in entrusted(case) if run.ends]
    return {
        "secrets said in a result": ended.count("completed"),
        "secrets said in an error": sum(status != "completed" for status in ended),
    }
