"""Planted faults of S14, S16 and S17: out of place, too many, too few, and a ledger that lies."""

import copy
from typing import Any

from chaos.oracle import seconds
from chaos.records import Operation, Phase
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import rfc3339

PLAIN = {"every": "PT9S", "catchUp": {"mode": "none", "window": "PT1H"}}


def job_like(it: Surgery, **fields: Any) -> Row:
    """A job that was never changed, with these and no other of the fields that it may have."""
    jobs = (row for row in it.jobs() if all(row.get(name) == value for name, value in fields.items()))
    changed = {each.job for each in it.evidence.operations if each.job}
    return next(row for row in jobs if row["jobId"] not in changed)


def _delay(it: Surgery, run: Row, offset: float) -> None:
    """Give it another place, and let it keep to that."""
    due = seconds(run["scheduledAt"]) + offset
    shift = due - seconds(run["dueAt"])
    run["dueAt"] = rfc3339(due)
    it.move(run, shift)


def another_instant(it: Surgery, run: Row, at: float) -> Row:
    """The same run once more, of another instant."""
    shift = at - seconds(run["scheduledAt"])
    again = it.copy(run, f"run_twin_{at:.0f}", shift)
    again |= {"scheduledAt": rfc3339(at), "dueAt": rfc3339(at)}
    for effect in it.effects(again):
        effect.scheduled_at = at
    return again


def _backfill(it: Surgery) -> list[str]:
    """The runs of one that had several to make, one after the other."""
    return next(runs for of_job in it.dump.backfilled.values() for runs in of_job.values() if len(runs) > 1)


def _asked_for(it: Surgery, runs: list[str]) -> Operation:
    """The call that wanted these."""
    (name,) = (name for of_job in it.dump.backfilled.values() for name, made in of_job.items() if made is runs)
    return next(each for each in it.answered("backfillJob") if (each.answer or {})["operationId"] == name)


@plant("S10 before its place")
def _(it: Surgery) -> None:
    runs = [it.occurrences(job_like(it, jitter=window))[1] for window in ("PT5S", "PT12S", "PT2.5S")]
    # Before its instant would be another fault as well.
    run = next(run for run in runs if seconds(run["dueAt"]) - seconds(run["scheduledAt"]) > 0.2)
    start = it.effects(run, Phase.START)[0]
    it.move(run, seconds(run["dueAt"]) - 0.1 - start.at)


@plant("S3 not made up for")
def _(it: Surgery) -> None:
    """The operator went on with the next, and forgot one of several."""
    forgotten = _backfill(it).pop()
    it.erase(next(row for row in it.runs() if row["runId"] == forgotten))


@plant("S3 not made up for again")
def _(it: Surgery) -> None:
    again = next(each for each in it.answered("backfillJob") if (each.body or {})["reprocess"] == "all")
    forgotten = it.dump.backfilled[again.job or ""][(again.answer or {})["operationId"]].pop()
    it.erase(next(row for row in it.runs() if row["runId"] == forgotten))


@plant("S4 made up for twice")
def _(it: Surgery) -> None:
    runs = _backfill(it)
    run = next(row for row in it.runs() if row["runId"] == runs[-1])
    twin = it.copy(run, "run_twin", seconds(run["finishedAt"]) - seconds(run["createdAt"]) + 0.3)
    twin["dueAt"] = twin["createdAt"]  # when the other was through: that it is there at all is the fault
    runs.append(twin["runId"])


@plant("S4 made up for although it had run")
def _(it: Surgery) -> None:
    again = next(each for each in it.answered("backfillJob") if (each.body or {})["reprocess"] == "all")
    (again.body or {})["reprocess"] = "none"


@plant("S9 made up for at once")
def _(it: Surgery) -> None:
    first, second = (row for row in it.runs() if row["runId"] in _backfill(it)[:2])
    second["createdAt"] = second["dueAt"] = first["dueAt"]


@plant("S10 made up for out of order")
def _(it: Surgery) -> None:
    (_asked_for(it, _backfill(it)).body or {})["order"] = "newest"


@plant("S10 made up for in one go, out of order")
def _(it: Surgery) -> None:
    runs = _backfill(it)
    first, second = (row for row in it.runs() if row["runId"] in runs[:2])
    second["createdAt"] = second["dueAt"] = first["dueAt"]
    (_asked_for(it, runs).body or {})["concurrency"] = 2
    runs[0], runs[1] = runs[1], runs[0]


@plant("S5 made up for outside the range")
def _(it: Surgery) -> None:
    first = it.answered("backfillJob")[0].body or {}
    first["until"] = first["from"]


@plant("S14 before its instant")
def _(it: Surgery) -> None:
    run = it.occurrences(job_like(it, every="PT40S", overlap="allow"))[1]
    run["dueAt"] = rfc3339(seconds(run["scheduledAt"]) - 1)


@plant("S14 beyond its window")
def _(it: Surgery) -> None:
    _delay(it, it.occurrences(job_like(it, jitter="PT5S"))[1], 5.0)


@plant("S14 past the next instant")
def _(it: Surgery) -> None:
    _delay(it, it.occurrences(job_like(it, jitter="PT12S"))[1], 7.5)


@plant("S14 another place than usual")
def _(it: Surgery) -> None:
    run = it.occurrences(job_like(it, jitter="PT5S"))[1]
    offset = seconds(run["dueAt"]) - seconds(run["scheduledAt"])
    _delay(it, run, offset / 2 if offset > 0.1 else 1.0)


@plant("S14 late without a window")
def _(it: Surgery) -> None:
    _delay(it, it.occurrences(job_like(it, every="PT40S", overlap="allow"))[1], 0.5)


@plant("S16 one run too many")
def _(it: Surgery) -> None:
    job = job_like(it, every="PT30S", endsAt=job_like(it, jitter="PT5S")["endsAt"])
    last = max((row for row in it.runs() if row["jobId"] == job["jobId"]), key=lambda row: str(row["scheduledAt"]))
    another_instant(it, last, seconds(last["scheduledAt"]) + 30)


@plant("S3 silence, and its run went to a later instant")
def _(it: Surgery) -> None:
    """Counted at the end, all runs are there that the job may have."""
    job = job_like(it, every="PT30S", endsAt=job_like(it, jitter="PT5S")["endsAt"])
    _pass_on(it, [row for row in it.runs() if row["jobId"] == job["jobId"]], 2)


@plant("S3 silence when the runs were counted anew")
def _(it: Surgery) -> None:
    edit = next(each for each in it.answered("changeJob") if (each.body or {}).get("maxRuns") == 3)
    _pass_on(
        it, [row for row in it.runs() if row["jobId"] == edit.job and seconds(row["createdAt"]) > edit.completed], 0
    )


def _pass_on(it: Surgery, runs: list[Row], place: int) -> None:
    """Nothing is known of the instant at this place, and one more has a run behind the last."""
    rising = sorted(runs, key=lambda row: str(row["scheduledAt"]))
    first, second, last = (seconds(row["scheduledAt"]) for row in (*rising[:2], rising[-1]))
    another_instant(it, rising[-1], last + second - first)
    it.erase(rising[place])


def _ledger(it: Surgery, job: Row, status: str) -> Row:
    """A row of its ledger about an instant in quiet times, or of the outage if it was missed."""
    rows = it.dump.occurrences[job["jobId"]]
    return [row for row in rows if row["status"] == status][-5 if status == "fired" else -1]


@plant("S17 twice")
def _(it: Surgery) -> None:
    job = job_like(it, **PLAIN)
    it.dump.occurrences[job["jobId"]].append(dict(_ledger(it, job, "fired")))


@plant("S17 silence about a run")
def _(it: Surgery) -> None:
    job = job_like(it, **PLAIN)
    it.dump.occurrences[job["jobId"]].remove(_ledger(it, job, "fired"))


@plant("S17 silence about a miss")
def _(it: Surgery) -> None:
    job = job_like(it, **PLAIN)
    it.dump.occurrences[job["jobId"]].remove(_ledger(it, job, "missed"))


@plant("S17 silence about a run that was left, and was cancelled")
def _(it: Surgery) -> None:
    """All others were spent later: none was lacking when its instant came."""
    job = job_like(it, every="PT30S", endsAt=job_like(it, jitter="PT5S")["endsAt"])
    fired = _ledger(it, job, "fired")
    it.dump.occurrences[job["jobId"]].remove(fired)
    run = next(row for row in it.runs() if row["runId"] == fired["runId"])
    it.forget(run, row=False, phases=tuple(Phase))
    over = seconds(run["createdAt"]) + 0.1
    run |= {"status": "cancelled", "state": "cancelled", "attempts": 0, "finishedAt": rfc3339(over)}
    call = copy.copy(next(each for each in it.answered("cancelRun") if (each.answer or {})["status"] == "cancelled"))
    call.run, call.invoked, call.completed = run["runId"], over - 0.03, over + 0.03
    call.answer = {"runId": call.run, "status": "cancelled", "finishedAt": run["finishedAt"]}
    it.evidence.operations.append(call)


@plant("S17 silence about a pause")
def _(it: Surgery) -> None:
    resumed = it.answered("resumeJob")[0].job or ""
    rows = it.dump.occurrences[resumed]
    rows[:] = [row for row in rows if row["reason"] != "the job was paused"]


@plant("S17 unaccounted")
def _(it: Surgery) -> None:
    _ledger(it, job_like(it, **PLAIN), "missed").update(status="unaccounted", reason=None)


@plant("S17 still due")
def _(it: Surgery) -> None:
    _ledger(it, job_like(it, **PLAIN), "fired").update(status="due", runId=None, runStatus=None, dueAt=None)


@plant("S17 missed told as fired")
def _(it: Surgery) -> None:
    _ledger(it, job_like(it, **PLAIN), "missed").update(status="fired", reason=None)


@plant("S17 fired told as missed")
def _(it: Surgery) -> None:
    _ledger(it, job_like(it, **PLAIN), "fired").update(status="missed", runId=None, runStatus=None, dueAt=None)


@plant("S17 missed told as skipped")
def _(it: Surgery) -> None:
    _ledger(it, job_like(it, **PLAIN), "missed").update(status="skipped", reason="the previous run was still going")


@plant("S17 skipped told as missed")
def _(it: Surgery) -> None:
    job = next(row for row in it.jobs() if row.get("every") == "PT8S")
    _ledger(it, job, "skipped").update(status="missed", reason="it came up late")


@plant("S17 an instant that is none")
def _(it: Surgery) -> None:
    row = _ledger(it, job_like(it, **PLAIN), "fired")
    stray = {**row, "at": rfc3339(seconds(row["at"]) + 1)}
    it.dump.occurrences[job_like(it, **PLAIN)["jobId"]].append(stray)


@plant("S17 another end than its run's")
def _(it: Surgery) -> None:
    _ledger(it, job_like(it, **PLAIN), "fired")["runStatus"] = "cancelled"
