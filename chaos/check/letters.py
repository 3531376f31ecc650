"""S18: a dead letter goes on when somebody lets it, as often as that, and never again when it was given up."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from chaos.check.calls import group
from chaos.check.case import Case
from chaos.check.facts import Call, Run
from chaos.check.finding import Finding
from chaos.oracle import seconds
from chaos.records import Operation, Outcome

KINDS = {"retryRun": "replayed", "replayLetters": "replayed", "discardLetters": "discarded"}
HAND = "hand"
Row = dict[str, Any]


class Decisions:
    """What was asked to be done with dead letters, by run and by operation."""

    def __init__(self, case: Case) -> None:
        self.named: dict[tuple[str, str], list[Call]] = defaultdict(list)
        """Calls that name a run, by deed and run: of each at most one deed comes."""
        self.filtered: dict[str, list[Call]] = defaultdict(list)
        for call in group(case.evidence.operations, KINDS.keys()):
            deed, body = KINDS[call.first.kind], call.first.body or {}
            if all(each.outcome is Outcome.FAIL for each in call.operations):
                continue
            if "filter" in body:
                self.filtered[deed].append(call)
            for run in {*body.get("runIds", ()), *([call.first.run] if call.first.run else ())}:
                self.named[deed, run].append(call)

    def explains(self, row: Row, run: str, clock: float) -> bool:
        """Whether a deed on record was asked for before."""
        if row["by"] == HAND:
            return any(call.first.invoked <= row["at"] + clock for call in self.named[row["deed"], run])
        calls = [call for call in self.filtered[row["deed"]] if call.first.invoked <= row["at"] + clock]
        return any(call.unsure or _operation(call.answered) == row["by"] for call in calls)


def letters_broken(case: Case) -> Iterator[Finding]:
    decisions = Decisions(case)
    for name, rows in case.evidence.dump.decided.items():
        run = case.runs.get(name) or Run(name)
        yield from _unasked(case, decisions, run, rows)
        yield from _idle(case, run, rows)
        yield from _given_up(case, run, rows)
    for (deed, name), calls in decisions.named.items():
        yield from _unheard(case, deed, case.runs.get(name) or Run(name), calls)
    yield from _overlooked(case, decisions)


def _unasked(case: Case, decisions: Decisions, run: Run, rows: list[Row]) -> Iterator[Finding]:
    for row in rows:
        if not decisions.explains(row, run.id, case.bounds.clock):
            yield _about(run, "unasked", f"was {row['deed']} by {row['by']}, and nobody asked for that", row["at"])
    for deed in ("replayed", "discarded"):
        by_hand = [row for row in rows if row["deed"] == deed and row["by"] == HAND]
        asked = sum(len(call.operations) if call.first.key is None else 1 for call in decisions.named[deed, run.id])
        if 0 < asked < len(by_hand):
            message = f"was {deed} {len(by_hand)} times, and that was asked for {asked} times"
            yield _about(run, "twice", message, by_hand[-1]["at"])


def _unheard(case: Case, deed: str, run: Run, calls: list[Call]) -> Iterator[Finding]:
    """It was acknowledged, and is not on record."""
    rows = [row for row in case.evidence.dump.decided.get(run.id, []) if row["deed"] == deed]
    clock = case.bounds.clock
    for call in calls:
        done = call.answered
        if done is None or not _includes(done, run.id):
            continue
        if not any(call.first.invoked - clock <= row["at"] <= done.completed + clock for row in rows):
            yield _about(
                run, "unheard", f"was {deed} by an acknowledged call, and that is not on record", done.completed
            )


def _overlooked(case: Case, decisions: Decisions) -> Iterator[Finding]:
    """It had been dead when a filter was acknowledged that means it, and is still as it was."""
    filters = [call for calls in decisions.filtered.values() for call in calls if _had_its_time(case, call)]
    wanted = [(call.first, (call.first.body or {})["filter"]) for call in filters]
    for run in case.runs.values() if wanted else ():
        if run.submission is None or run.row is None or run.row["state"] != "dead":
            continue
        died = run.moment("finishedAt") or case.cutoff
        tenant, handler = run.submission.operation.tenant, run.submission.body.get("handler")
        for first, filter_ in wanted:
            if died < first.invoked - case.bounds.clock and (first.tenant, {"handler": handler}) == (tenant, filter_):
                message = f"was dead when an acknowledged filter meant it (operation {first.number}), and is"
                yield _about(run, "overlooked", message, died)
                break


def _had_its_time(case: Case, call: Call) -> bool:
    """Whether it was acknowledged, and so long ago that it is through with all that it found."""
    done, bounds = call.answered, case.bounds
    return done is not None and case.faults.postponed(done.completed + bounds.lateness) <= case.cutoff


def _idle(case: Case, run: Run, rows: list[Row]) -> Iterator[Finding]:
    """It was let go on, and did not."""
    back = [row["at"] for row in rows if row["deed"] == "replayed"]
    if not back or run.status not in {"failed", "completed"}:
        return
    ends = (seconds(each["finishedAt"]) for each in run.attempts if each["finishedAt"] is not None)
    last = max((*(start.at for start in run.starts), *ends), default=0.0)
    if last < back[-1] - case.bounds.clock:
        yield _about(run, "idle", f"was let go on, is {run.status}, and never began again", back[-1])


def _given_up(case: Case, run: Run, rows: list[Row]) -> Iterator[Finding]:
    clock = case.bounds.clock
    for row in rows:
        if row["deed"] != "discarded":
            continue
        if row is not rows[-1]:
            yield _about(run, "back", f"was discarded, and {rows[-1]['deed']} after that", rows[-1]["at"])
        elif run.row is not None and run.row["state"] != "discarded":
            yield _about(run, "back", f"was discarded, and is {run.row['state']}", row["at"])
        for start in run.starts:
            if start.at > row["at"] + clock and not _was_over(run, start.fence, row["at"]):
                yield _about(run, "discarded", "began after it had been discarded", start.at)


def _was_over(run: Run, fence: int, at: float) -> bool:
    """A handler whose worker stood still says its first word when the attempt has long been over."""
    row = run.attempt_of(fence)
    return row is not None and row["finishedAt"] is not None and seconds(row["finishedAt"]) <= at


def _includes(done: Operation, run: str) -> bool:
    return done.kind == "retryRun" or run in (done.answer or {}).get("runIds", ())


def _operation(done: Operation | None) -> str | None:
    told = None if done is None else (done.answer or {}).get("operation")
    return None if told is None else str(told["operationId"])


def _about(run: Run, rule: str, message: str, at: float | None = None) -> Finding:
    return Finding(check="S18", rule=rule, message=message, run=run.id, job=run.job, at=at)
