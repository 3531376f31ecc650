"""S34: nobody is called whom the deployment denies to handlers, whatever address a run names."""

from collections.abc import Iterator

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.records import digest

REFUSED = "refused"
"""The class of an error of who was kept from calling."""


def heard_nevertheless(case: Case) -> Iterator[Finding]:
    payloads = {
        digest((each.body or {}).get("payload")) for each in case.evidence.operations if is_forbidden(case, each.body)
    }
    for run in case.runs.values() if payloads else ():
        for start in run.starts:
            if start.payload in payloads:
                message = "called an address that the deployment denies, and was heard there"
                yield Finding(check="S34", rule="heard", message=message, run=run.id, job=run.job, at=start.at)


def is_forbidden(case: Case, body: dict[str, object] | None) -> bool:
    """Whether a run that was handed in like this names an address that handlers may not call."""
    forbidden = case.evidence.settings.get("forbidden")
    return forbidden is not None and body is not None and body.get("handler") == forbidden


def held_back(case: Case) -> dict[str, int]:
    runs = (run for run in case.runs.values() if run.submission and is_forbidden(case, run.submission.body))
    return {"calls that the guard refused": sum(map(_was_refused, runs))}


def _was_refused(run: Run) -> bool:
    return run.status == "failed" and any(each.get("errorClass") == REFUSED for each in run.attempts)
