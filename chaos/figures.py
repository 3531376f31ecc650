"""The numbers of a run that people ask for first: how late, and how quickly back."""

import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from chaos.oracle import seconds
from chaos.records import Effect, Evidence, Fault, Phase, waits_for_others

BOUNDS: Final = {
    "worker kill to restart of its runs": 20.0,
    "scheduler kill to next fire": 10.0,
    "database accepting to first start": 5.0,
}
"""Seconds that we promise. A kill counts from the last restart of the database, if that came later."""
DATABASE: Final = frozenset({"postgresKill", "postgresStop", "diskFull"})
AFTERMATH: Final = 20.0
"""Seconds after a fault that still belong to it: a lease, and a little."""


def windows(faults: Iterable[Fault], aftermath: float = 0.0) -> list[tuple[float, float]]:
    """The times under fault, in order, overlapping ones made one."""
    merged: list[tuple[float, float]] = []
    for began, ended in sorted((fault.began, fault.ended + aftermath) for fault in faults):
        if merged and began <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(ended, merged[-1][1]))
        else:
            merged.append((began, ended))
    return merged


def lateness(evidence: Evidence) -> list[tuple[float, float]]:
    """(when, how late) of every run's first start; a run with jitter is late from its own place on.

    The instants of a back-fill are past by intent: its runs are not late.
    """
    seen = {run for runs in evidence.dump.backfilled.values() for run in runs}
    due, waits = _jittered(evidence), waits_for_others(evidence)
    found = []
    for effect in evidence.effects:
        if effect.phase is Phase.START and effect.run not in seen and not waits(effect):
            seen.add(effect.run)
            if effect.scheduled_at is not None:
                found.append((effect.at, max(0.0, effect.at - due.get(effect.run, effect.scheduled_at))))
    return found


def _jittered(evidence: Evidence) -> dict[str, float]:
    """Runs that were to begin later than at their instant, and when; a retry's own time says nothing about that."""
    return {
        row["runId"]: seconds(row["dueAt"])
        for rows in evidence.dump.runs.values()
        for row in rows
        if row["jobId"] is not None and row["dueAt"] != row["scheduledAt"] and _at_once(row)
    }


def _at_once(row: dict[str, Any]) -> bool:
    return bool(row["attempts"] == 1 and row["status"] == "completed")


def percentiles(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    last = len(ordered) - 1
    named = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
    return {name: round(ordered[min(last, int(last * part + 0.5))], 4) for name, part in named.items()}


def split_lateness(evidence: Evidence) -> dict[str, dict[str, float]]:
    """Percentiles in quiet times, and within a fault or its aftermath."""
    stormy = windows(evidence.faults, AFTERMATH)
    begins = [began for began, _ in stormy]
    quiet: list[float] = []
    faulted: list[float] = []
    for at, late in lateness(evidence):
        index = bisect.bisect_right(begins, at - late) - 1
        (faulted if index >= 0 and at - late <= stormy[index][1] else quiet).append(late)
    return {"quiet": percentiles(quiet), "faulted": percentiles(faulted)}


def recovery(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Seconds from each kill to what shows that it is overcome; the number of cases, the worst, and what we promise."""
    starts = [effect for effect in evidence.effects if effect.phase is Phase.START]
    measured = (_worker_kills, _scheduler_kills, _database_restarts)
    return {
        name: {"cases": len(found), "bound": bound, **({"worst": round(max(found), 2)} if found else {})}
        for (name, bound), found in zip(BOUNDS.items(), (each(evidence, starts) for each in measured), strict=True)
    }


def too_slow(recovery: dict[str, dict[str, Any]]) -> list[str]:
    """Which promises of recovery were not kept, in words."""
    return [
        f"{name}: {each['worst']:.2f} s, and {each['bound']:g} s is promised"
        for name, each in recovery.items()
        if each.get("worst", 0.0) > each["bound"]
    ]


def _worker_kills(evidence: Evidence, starts: list[Effect]) -> list[float]:
    """From the kill, or from the end of the last trouble of the database before the restart, whichever is later."""
    by_run: dict[str, list[Effect]] = defaultdict(list)
    for start in starts:
        by_run[start.run].append(start)
    over = {(e.run, e.nonce) for e in evidence.effects if e.phase is Phase.END}
    outages = [(fault.began, fault.ended) for fault in evidence.faults if fault.kind in DATABASE]
    rows = [row for rows_ in evidence.dump.attempts.values() for row in rows_ if row["finishedAt"] is not None]
    settled = {(row["runId"], row["fence"]): seconds(row["finishedAt"]) for row in rows}
    found = []
    for kill in (fault for fault in evidence.faults if fault.kind == "kill" and fault.target.startswith("worker")):
        for start in starts:
            if settled.get((start.run, start.fence), kill.began) < kill.began or start.run in evidence.dump.decided:
                continue  # it had snoozed, or run into its time-out; or it came back when somebody wanted it to
            if start.worker == kill.detail and (start.run, start.nonce) not in over and start.at <= kill.ended + 1:
                again = [each.at for each in by_run[start.run] if each.fence > start.fence]
                if again:
                    since = [ended for began, ended in outages if kill.began <= ended and began <= min(again)]
                    found.append(max(0.0, min(again) - max([kill.began, *since])))
    return found


def _scheduler_kills(evidence: Evidence, starts: list[Effect]) -> list[float]:
    """How late the first instants after a kill were started."""
    apart, waits = _jittered(evidence), waits_for_others(evidence)
    own = [each for each in starts if each.job and not waits(each)]
    fired = [each for each in own if each.attempt == 1 and each.scheduled_at and each.run not in apart]
    found = []
    for kill in (fault for fault in evidence.faults if fault.kind == "kill" and fault.target.startswith("scheduler")):
        after = sorted((s.scheduled_at, s.at) for s in fired if s.scheduled_at and s.scheduled_at >= kill.began)
        if after:
            found.append(max(at - kill.began for instant, at in after if instant == after[0][0]))
    return found


def _database_restarts(evidence: Evidence, starts: list[Effect]) -> list[float]:
    times = [start.at for start in starts]
    found = []
    for fault in evidence.faults:
        if fault.kind in {"postgresKill", "postgresStop"}:
            index = bisect.bisect_left(times, fault.ended)
            if index < len(times):
                found.append(times[index] - fault.ended)
    return found
