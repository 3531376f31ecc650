"""How often a run may be tried, by what its owner wrote; and S2: it was given up before all that was used."""

from collections.abc import Iterator
from typing import Any, Final

from chaos.check.case import Case
from chaos.check.facts import Run
from chaos.check.finding import Finding

FAILED: Final = frozenset({"failed", "timed_out"})
_DEFAULT: Final = 3
_QUARANTINE: Final = 3
"""Deaths under it after which a run is given up, whatever retries it has."""
_PERMANENT: Final = frozenset({"Permanent", "refused", "SecretMissing", "CommandNotAllowed", "UnreadablePayload"})
_TRY_AGAIN: Final = frozenset({"http:408", "http:409", "http:425", "http:429"})
"""Of the answers that blame the caller, those after which another try may go well."""


def most_retries(case: Case, run: Run) -> int:
    return max((int(each.get("maxRetries", _DEFAULT)) for each in case.bodies_of(run)), default=1000)


def is_at_most_once(case: Case, run: Run) -> bool:
    bodies = case.bodies_of(run)
    return bool(bodies) and all(each.get("delivery") == "atMostOnce" for each in bodies)


def given_up_early(case: Case, run: Run) -> Iterator[Finding]:
    """S2: a run became a dead letter although it had retries left, or its end is unknown although it could go on."""
    if run.status != "failed" and run.id not in case.evidence.dump.decided:
        return
    bodies = case.bodies_of(run)
    if not run.attempts or not bodies:
        return
    once = any(each.get("delivery") == "atMostOnce" for each in bodies)
    if not once and run.status == "failed" and any(each["status"] == "unknown" for each in run.attempts):
        yield _about(run, "unknown", "has an attempt whose end is unknown, and is delivered at least once")
    least = 0 if once else min(map(_least_retries, bodies))
    for turn in _ended_turns(case, run):
        failures = sum(each["status"] in FAILED for each in turn)
        if failures <= least and not any(map(_is_final, turn)) and not _is_quarantined(run, turn):
            message = f"was given up after {failures} failures, and {least} retries were to follow the first"
            yield _about(run, "gave up early", message)


def _least_retries(body: dict[str, Any]) -> int:
    """A rule for one kind of error may allow fewer than the rest have."""
    own = int(body.get("maxRetries", _DEFAULT))
    rules = body.get("retry") or []
    return min([own, *(0 if each.get("never") else int(each.get("maxRetries", own)) for each in rules)])


def _ended_turns(case: Case, run: Run) -> list[list[dict[str, Any]]]:
    """The attempts up to each time it was used up; every replay gives all retries anew, and the last may end well."""
    turns: list[list[dict[str, Any]]] = [[] for _ in range(len(case.replays(run)) + 1)]
    for each in run.attempts:
        if each["finishedAt"] is not None:
            turns[case.turn_of(run, each)].append(each)
    ended = turns if run.status == "failed" else turns[:-1]
    return [turn for turn in ended if turn]  # S18 asks about those who were let go on, and did not


def _is_final(row: dict[str, Any]) -> bool:
    """Trying again is no use, or nobody knows whether it has to be done; S6 asks about those who had succeeded."""
    kind = str(row.get("errorClass") or "")
    return (
        row["status"] in {"unknown", "completed"}
        or kind in _PERMANENT
        or (kind.startswith("http:4") and kind not in _TRY_AGAIN)
    )


def _is_quarantined(run: Run, turn: list[dict[str, Any]]) -> bool:
    last = max(turn, key=lambda each: int(each["fence"]), default=None)
    deaths = sum(each["status"] == "lost" for each in run.attempts)
    return last is not None and last["status"] == "lost" and deaths >= _QUARANTINE


def _about(run: Run, rule: str, message: str) -> Finding:
    return Finding(check="S2", rule=rule, message=message, run=run.id, job=run.job, at=run.moment("finishedAt"))
