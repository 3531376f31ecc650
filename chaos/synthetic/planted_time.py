"""Planted faults of S14 to S17: out of place, caught up wrongly, too many, and a ledger that lies."""

from typing import Any

from chaos.oracle import seconds
from chaos.records import Operation, Phase
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import rfc3339


def _job(it: Surgery, **fields: Any) -> Row:
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


def _another_instant(it: Surgery, run: Row, at: float) -> Row:
    """The same run once more, of another instant."""
    shift = at - seconds(run["scheduledAt"])
    again = it.copy(run, f"run_twin_{at:.0f}", shift)
    again |= {"scheduledAt": rfc3339(at), "dueAt": rfc3339(at)}
    for effect in it.effects(again):
        effect.scheduled_at = at
    return again


def _late(it: Surgery, job: Row) -> tuple[list[Row], list[float]]:
    """Its runs that were caught up with, and the beginning and the end of what it missed."""
    runs = [row for row in it.runs() if row["jobId"] == job["jobId"]]
    late = [row for row in runs if seconds(row["createdAt"]) - seconds(row["scheduledAt"]) > 30]
    gaps = [gap for rows in it.dump.missed.values() for gap in rows if gap["job"] == job["jobId"]]
    return sorted(late, key=lambda row: str(row["scheduledAt"])), [gaps[0]["from"], gaps[0]["through"]] if gaps else []


def _run_late(it: Surgery, job: Row, at: float) -> None:
    """An instant that was missed has a run, made when the outage was over."""
    back = next(fault.ended for fault in it.evidence.faults if fault.target == "scheduler-0") + 0.41
    run = it.occurrences(job)[1]
    again = _another_instant(it, run, at)
    shift = back - seconds(again["createdAt"])
    again["createdAt"] = rfc3339(back)
    it.move(again, shift)
    for rows in it.dump.missed.values():
        rows[:] = [each for gap in rows for each in _without(gap, job["jobId"], at)]


def _backfill(it: Surgery) -> list[str]:
    """The runs of one that had several to make, one after the other."""
    return next(runs for of_job in it.dump.backfilled.values() for runs in of_job.values() if len(runs) > 1)


def _asked_for(it: Surgery, runs: list[str]) -> Operation:
    """The call that wanted these."""
    (name,) = (name for of_job in it.dump.backfilled.values() for name, made in of_job.items() if made is runs)
    return next(each for each in it.answered("backfillJob") if (each.answer or {})["operationId"] == name)


def _without(gap: Row, job: str, at: float) -> list[Row]:
    if gap["job"] != job or not gap["from"] <= at <= gap["through"]:
        return [gap]
    parts = [{**gap, "through": at - 1}, {**gap, "from": at + 1}]
    return [part for part in parts if part["from"] <= part["through"]]


@plant("S10 before its place")
def _(it: Surgery) -> None:
    runs = [it.occurrences(_job(it, jitter=window))[1] for window in ("PT5S", "PT12S", "PT2.5S")]
    # Before its instant would be another fault as well.
    run = next(run for run in runs if seconds(run["dueAt"]) - seconds(run["scheduledAt"]) > 0.2)
    start = it.effects(run, Phase.START)[0]
    it.move(run, seconds(run["dueAt"]) - 0.1 - start.at)


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
    run = it.occurrences(_job(it, every="PT40S", overlap="allow"))[1]
    run["dueAt"] = rfc3339(seconds(run["scheduledAt"]) - 1)


@plant("S14 beyond its window")
def _(it: Surgery) -> None:
    _delay(it, it.occurrences(_job(it, jitter="PT5S"))[1], 5.0)


@plant("S14 past the next instant")
def _(it: Surgery) -> None:
    _delay(it, it.occurrences(_job(it, jitter="PT12S"))[1], 7.5)


@plant("S14 another place than usual")
def _(it: Surgery) -> None:
    run = it.occurrences(_job(it, jitter="PT5S"))[1]
    offset = seconds(run["dueAt"]) - seconds(run["scheduledAt"])
    _delay(it, run, offset / 2 if offset > 0.1 else 1.0)


@plant("S14 late without a window")
def _(it: Surgery) -> None:
    _delay(it, it.occurrences(_job(it, every="PT40S", overlap="allow"))[1], 0.5)


@plant("S15 none")
def _(it: Surgery) -> None:
    job = _job(it, catchUp={"mode": "none", "window": "PT1H"})
    _run_late(it, job, _late(it, job)[1][0] + 9)


@plant("S15 latest, and one before it")
def _(it: Surgery) -> None:
    job = _job(it, catchUp={"mode": "latest", "window": "PT5M"})
    latest = seconds(_late(it, job)[0][0]["scheduledAt"])
    for earlier in (9, 18):  # the latest itself may have been on time, for all that we know
        _run_late(it, job, latest - earlier)


@plant("S15 later than its window")
def _(it: Surgery) -> None:
    job = _job(it, catchUp={"mode": "latest", "window": "PT10S"})
    _run_late(it, job, _late(it, job)[1][0] + 9)


@plant("S15 all but one")
def _(it: Surgery) -> None:
    job = _job(it, catchUp={"mode": "all", "window": "PT10M"})
    late = _late(it, job)[0][1]
    it.erase(late)
    at = seconds(late["scheduledAt"])
    it.dump.missed[it.tenant_of(job)].append({"job": job["jobId"], "from": at, "through": at})


@plant("S16 one run too many")
def _(it: Surgery) -> None:
    job = _job(it, every="PT30S", endsAt=_job(it, jitter="PT5S")["endsAt"])
    last = max((row for row in it.runs() if row["jobId"] == job["jobId"]), key=lambda row: str(row["scheduledAt"]))
    _another_instant(it, last, seconds(last["scheduledAt"]) + 30)


def _ledger(it: Surgery, job: Row, status: str) -> Row:
    """A row of its ledger about an instant in quiet times, or of the outage if it was missed."""
    rows = it.dump.occurrences[job["jobId"]]
    return [row for row in rows if row["status"] == status][-5 if status == "fired" else -1]


_PLAIN = {"every": "PT9S", "catchUp": {"mode": "none", "window": "PT1H"}}


@plant("S17 twice")
def _(it: Surgery) -> None:
    job = _job(it, **_PLAIN)
    it.dump.occurrences[job["jobId"]].append(dict(_ledger(it, job, "fired")))


@plant("S17 silence about a run")
def _(it: Surgery) -> None:
    job = _job(it, **_PLAIN)
    it.dump.occurrences[job["jobId"]].remove(_ledger(it, job, "fired"))


@plant("S17 silence about a miss")
def _(it: Surgery) -> None:
    job = _job(it, **_PLAIN)
    it.dump.occurrences[job["jobId"]].remove(_ledger(it, job, "missed"))


@plant("S17 silence about a pause")
def _(it: Surgery) -> None:
    resumed = it.answered("resumeJob")[0].job or ""
    rows = it.dump.occurrences[resumed]
    rows[:] = [row for row in rows if row["reason"] != "the job was paused"]


@plant("S17 unaccounted")
def _(it: Surgery) -> None:
    _ledger(it, _job(it, **_PLAIN), "missed").update(status="unaccounted", reason=None)


@plant("S17 still due")
def _(it: Surgery) -> None:
    _ledger(it, _job(it, **_PLAIN), "fired").update(status="due", runId=None, runStatus=None, dueAt=None)


@plant("S17 missed told as fired")
def _(it: Surgery) -> None:
    _ledger(it, _job(it, **_PLAIN), "missed").update(status="fired", reason=None)


@plant("S17 fired told as missed")
def _(it: Surgery) -> None:
    _ledger(it, _job(it, **_PLAIN), "fired").update(status="missed", runId=None, runStatus=None, dueAt=None)


@plant("S17 missed told as skipped")
def _(it: Surgery) -> None:
    _ledger(it, _job(it, **_PLAIN), "missed").update(status="skipped", reason="the previous run was still going")


@plant("S17 skipped told as missed")
def _(it: Surgery) -> None:
    job = next(row for row in it.jobs() if row.get("every") == "PT8S")
    _ledger(it, job, "skipped").update(status="missed", reason="it came up late")


@plant("S17 an instant that is none")
def _(it: Surgery) -> None:
    row = _ledger(it, _job(it, **_PLAIN), "fired")
    stray = {**row, "at": rfc3339(seconds(row["at"]) + 1)}
    it.dump.occurrences[_job(it, **_PLAIN)["jobId"]].append(stray)


@plant("S17 another end than its run's")
def _(it: Surgery) -> None:
    _ledger(it, _job(it, **_PLAIN), "fired")["runStatus"] = "cancelled"
