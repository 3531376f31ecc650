"""S25: what the audit trail has to tell: every acknowledged change, and every call that was denied."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from chaos.check.calls import group
from chaos.check.case import Case
from chaos.check.finding import Finding
from chaos.check.keys import lives_of
from chaos.records import Operation, Outcome

ALWAYS: Final = frozenset(
    {
        "createJob",
        "createJobs",
        "changeJob",
        "backfillJob",
        "runJob",
        "createKey",
        "rotateKey",
        "rotateEncryption",
        "putSecret",
        "retryRun",
        "pauseQueue",
    }
)
"""Calls that have changed something whenever they succeed."""
LETTERS: Final = frozenset({"replayLetters", "discardLetters"})
"""Calls that have, if there was anything to be done by them."""
BECAME: Final = {
    "pauseJob": ("gate", "paused"),
    "cancelJob": ("gate", "cancelled"),
    "deleteJob": ("gate", "cancelled"),
    "revokeKey": ("status", "revoked"),
}
"""Calls that may have found it done already: then somebody else's entry tells of it."""
DENIED: Final = frozenset({401, 403})
_GATHERED: Final = 3.0
"""Seconds after a call was denied until that must be written down: they are gathered for a second."""


def untold(case: Case, entries: Iterable[dict[str, Any]]) -> Iterator[Finding]:
    done = [each for each in entries if each["outcome"] == "done"]
    requests = {each["request"] for each in done}
    for tries in _changes(case):
        # Of a call that was repeated, the try that took effect is told of, which need not be the one that was answered.
        if not any(each.request in requests for each in tries):
            yield _missing(tries[-1], "nothing tells of {kind} (operation {number})")
    became = {(each["subject"], *fact) for each in done for fact in _facts(each)}
    for each in case.evidence.operations:
        if (
            each.kind in BECAME
            and each.outcome is Outcome.OK
            and (each.job or each.thing, *BECAME[each.kind]) not in became
        ):
            yield _missing(each, "nothing tells of {kind} (operation {number})")


def denied_untold(case: Case, entries: Iterable[dict[str, Any]]) -> Iterator[Finding]:
    """Those of one caller within a second are one entry with a count: by key all are counted.

    Left out is what an API may have taken along that a fault was on.
    """
    told: Counter[str] = Counter()
    for entry in entries:
        if entry["outcome"] == "denied" and entry["key"]:
            told[f"key_{entry['key'].removeprefix('key_')}"] += json.loads(entry["after"])["attempts"]
    asked: dict[str, list[Operation]] = defaultdict(list)
    for each in case.evidence.operations:
        if each.by is not None and each.status in DENIED and not _may_be_lost(case, each):
            asked[each.by].append(each)
    for key in asked.keys() & lives_of(case).keys():
        if told[key] < len(asked[key]):
            message = f"of {len(asked[key])} calls of {key} that were denied it tells of {told[key]}, {{kind}} the last"
            yield _missing(asked[key][-1], message)


def _changes(case: Case) -> Iterator[list[Operation]]:
    """Every call that was acknowledged and has changed something, with all its tries."""
    for call in group(case.evidence.operations, ALWAYS | LETTERS):
        answer = None if call.answered is None else call.answered.answer or {}
        if answer is not None and (call.first.kind in ALWAYS or answer.get("runIds") or answer.get("operation")):
            yield call.operations
    for name, calls in case.cancels.items():
        run = case.runs.get(name)
        # A job's other runs may have been cancelled with it; and who was through already was not cancelled.
        alone = run is not None and run.job is None and run.status == "cancelled"
        if alone and any(each.outcome is Outcome.OK for each in calls):
            yield calls


def _may_be_lost(case: Case, each: Operation) -> bool:
    over = each.completed + _GATHERED
    return case.faults.struck(f"api-{each.api}", each.invoked, over) or case.faults.down(each.invoked, over)


def _facts(entry: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    after = json.loads(entry["after"] or "null")
    return ((name, after[name]) for name in ("gate", "status") if isinstance(after, dict) and name in after)


def _missing(each: Operation, message: str) -> Finding:
    told = message.format(kind=each.kind, number=each.number)
    return Finding(check="S25", rule="untold", message=told, job=each.job, run=each.run, at=each.completed)
