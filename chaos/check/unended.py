"""S28: whoever never came to its end was stopped for a reason, and nobody goes on when its time is up."""

from collections.abc import Iterator
from typing import Any, Final

from chaos.check.case import Case
from chaos.check.command import is_command
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.check.forbidden import REFUSED
from chaos.check.poison import poisonous
from chaos.oracle import seconds
from chaos.records import BOOKING

_STOPPED: Final = frozenset({"failed", "timed_out", "released"})
"""What becomes of who did not come to its end, unless somebody cancelled it or its worker was lost."""
DEFAULT: Final = 300.0
"""Seconds that an attempt may take if its owner says nothing."""
_SOONER: Final = 0.5
"""The share of its time, and the seconds, that may be gone when a handler on a busy machine says its first word."""
_LATER: Final = 3.0
"""Seconds in which somebody whose time is up may yet give a sign of life: some have to be asked."""
_NEVER_CALLED: Final = frozenset({REFUSED, "SecretMissing", "CommandNotAllowed", "UnreadablePayload"})
"""Classes of errors of who was not called by this attempt, but perhaps by another of the same claim."""


def stopped_without_reason(case: Case, run: Run) -> Iterator[Finding]:
    """It began and never came to its end, and is on record as failed, out of time or handed back."""
    for row in run.attempts:
        if row["status"] not in _STOPPED or any(each.fence == row["fence"] for each in run.ends):
            continue
        start = next((each for each in run.starts if each.fence == row["fence"]), None)
        if start is None or row["finishedAt"] is None or row.get("lateResult") or poisonous(case, run):
            continue
        finished = seconds(row["finishedAt"])
        worker = case.worker_of(start)
        if case.faults.held(worker, start.at, finished) or case.faults.slowed(worker, start.at, finished):
            continue
        if complaint := _complaint(case, run, row, finished - start.at):
            message = f"fence {start.fence} never came to its end, and {complaint}"
            yield _about(run, "stopped", message, finished)


def beyond_its_time(case: Case, run: Run) -> Iterator[Finding]:
    """A handler gives a sign of life long after its time was up."""
    latest = max(run.ends[-1].at if run.ends else 0.0, run.beats[-1].at if run.beats else 0.0)
    if not run.starts or latest - run.starts[0].at <= _LATER:  # nearly all of them
        return
    longest = max(map(_limit, case.bodies_of(run)), default=DEFAULT)
    for start in run.starts:
        last = max((each.at for each in (*run.beats, *run.ends) if each.nonce == start.nonce), default=start.at)
        if last - start.at > longest + _LATER and not case.faults.held(case.worker_of(start), start.at, last):
            message = f"was alive {last - start.at:.1f} s after its start, and may take {longest:g} s"
            yield _about(run, "beyond its time", message, last)


def _complaint(case: Case, run: Run, row: dict[str, Any], took: float) -> str | None:
    bodies = case.bodies_of(run)
    match row["status"]:
        case "timed_out":
            least = min(map(_limit, bodies), default=0.0)
            if took < least - max(_SOONER, _SOONER * least):
                return f"ran out of time after {took:.3f} s, of {least:g} s"
        case "failed" if not (row.get("errorClass") in _NEVER_CALLED or _may_fall_silent(bodies)):
            return f"is on record as failed ({row.get('errorClass')}), and nothing had happened to its worker"
        case "released":
            return "was handed back, and nothing had happened to its worker"
        case _:
            pass
    return None


def _may_fall_silent(bodies: list[dict[str, Any]]) -> bool:
    """Whether a handler may fail without a word: one whose transaction fails, or a command that cannot say it."""
    return any(each.get("handler") in BOOKING or is_command(each) for each in bodies)


def _limit(body: dict[str, Any]) -> float:
    return float(body.get("timeoutSeconds", DEFAULT))


def _about(run: Run, rule: str, message: str, at: float) -> Finding:
    return Finding(check="S28", rule=rule, message=message, run=run.id, job=run.job, at=at)
