"""S13: every change that somebody asked to hear of was told, and no message was told in two ways.

Receipts stand in `settings["webhooks"]`: `{"id", "at", "tenant", "run", "event", "body"}`, body being a digest.
"""

from collections.abc import Iterator
from typing import Any

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.check.submissions import TERMINAL


def outbox(case: Case) -> Iterator[Finding]:
    receipts: list[dict[str, Any]] | None = case.evidence.settings.get("webhooks")
    if receipts is None:
        return
    bodies: dict[str, str] = {}
    told: set[tuple[str, str]] = set()
    for each in receipts:
        run = case.runs.get(each["run"])
        told.add((each["run"], each["event"]))
        if bodies.setdefault(each["id"], each["body"]) != each["body"]:
            message = f"the message {each['id']} came with two bodies"
            yield Finding(check="S13", rule="bodies", message=message, run=each["run"], at=each["at"])
        if run is not None and each["tenant"] != case.owner_of(run):
            message = f"a message about it went to {each['tenant']}"
            yield Finding(check="S11", rule="webhook", message=message, run=each["run"], at=each["at"])
    for run in case.runs.values():
        yield from _untold(case, run, told)


def _untold(case: Case, run: Run, told: set[tuple[str, str]]) -> Iterator[Finding]:
    status = run.status
    ended = run.moment("finishedAt")
    if status not in TERMINAL or ended is None or ended > case.cutoff:
        return
    wanted = [set(each.get("callback", {}).get("events", ())) for each in case.bodies_of(run)]
    if wanted and all(status in events for events in wanted) and (run.id, status) not in told:
        message = f"is {status}, and the message about it never arrived"
        yield Finding(check="S13", rule="silence", message=message, run=run.id, job=run.job, at=ended)
