"""Planted faults of what came up late: run although nobody wanted it any more, or left out without a reason."""

import msgspec

from chaos.oracle import seconds
from chaos.records import Fault
from chaos.synthetic.planted_time import PLAIN, another_instant, job_like
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import rfc3339

_OFTEN = range(50, 650, 50)
"""Seconds after an instant: until its window is over."""


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
    again = another_instant(it, run, at)
    shift = back - seconds(again["createdAt"])
    again["createdAt"] = rfc3339(back)
    it.move(again, shift)
    for rows in it.dump.missed.values():
        rows[:] = [each for gap in rows for each in _without(gap, job["jobId"], at)]


def _without(gap: Row, job: str, at: float) -> list[Row]:
    if gap["job"] != job or not gap["from"] <= at <= gap["through"]:
        return [gap]
    parts = [{**gap, "through": at - 1}, {**gap, "from": at + 1}]
    return [part for part in parts if part["from"] <= part["through"]]


def _miss(it: Surgery, job: Row, run: Row, opened: float | None = None) -> float:
    """An instant that had a run is recorded as missed instead."""
    it.erase(run)
    at = seconds(run["scheduledAt"])
    told = {} if opened is None else {"opened": opened}
    it.dump.missed[it.tenant_of(job)].append({"job": job["jobId"], "from": at, "through": at, **told})
    return at


def _miss_one_of_all(it: Surgery) -> float:
    """In quiet times a job that catches up with all goes without. There are two schedulers, which fared alike."""
    it.evidence.settings["schedulers"] = ["scheduler-0", "scheduler-1"]
    own = [fault for fault in it.evidence.faults if fault.target == "scheduler-0"]
    it.evidence.faults += [msgspec.structs.replace(fault, target="scheduler-1") for fault in own]
    job = job_like(it, catchUp={"mode": "all", "window": "PT10M"})
    return _miss(it, job, it.occurrences(job)[4])


@plant("S15 none")
def _(it: Surgery) -> None:
    job = job_like(it, catchUp={"mode": "none", "window": "PT1H"})
    _run_late(it, job, _late(it, job)[1][0] + 9)


@plant("S15 latest, and one before it")
def _(it: Surgery) -> None:
    job = job_like(it, catchUp={"mode": "latest", "window": "PT5M"})
    latest = seconds(_late(it, job)[0][0]["scheduledAt"])
    for earlier in (9, 18):  # the latest itself may have been on time, for all that we know
        _run_late(it, job, latest - earlier)


@plant("S15 later than its window")
def _(it: Surgery) -> None:
    job = job_like(it, catchUp={"mode": "latest", "window": "PT10S"})
    _run_late(it, job, _late(it, job)[1][0] + 9)


@plant("S15 all but one")
def _(it: Surgery) -> None:
    job = job_like(it, catchUp={"mode": "all", "window": "PT10M"})
    _miss(it, job, _late(it, job)[0][1])


@plant("S15 all but one, while faults of others went on")
def _(it: Surgery) -> None:
    job = job_like(it, catchUp={"mode": "all", "window": "PT10M"})
    late = _late(it, job)[0][1]
    _miss(it, job, late)
    began = seconds(late["scheduledAt"])
    it.evidence.faults += [Fault(kind="delay", target="api-0", began=began + at, ended=began + at + 5) for at in _OFTEN]


@plant("S15 all but one that came up in time")
def _(it: Surgery) -> None:
    """By what happened to the schedulers alone, it may have come up too late."""
    job = job_like(it, catchUp={"mode": "all", "window": "PT45S"})
    late = _late(it, job)[0][0]
    _miss(it, job, late, seconds(late["createdAt"]))


@plant("S3 missed beside a slow wire of a scheduler")
def _(it: Surgery) -> None:
    at = _miss_one_of_all(it)
    it.evidence.faults.append(Fault(kind="delay", target="scheduler-1", began=at - 31, ended=at - 29))


@plant("S3 missed while another scheduler stood")
def _(it: Surgery) -> None:
    at = _miss_one_of_all(it)
    it.evidence.faults.append(Fault(kind="stop", target="scheduler-1", began=at - 5, ended=at + 40))


@plant("S3 missed long before a scheduler was killed")
def _(it: Surgery) -> None:
    at = _miss_one_of_all(it)
    for name in it.evidence.settings["schedulers"]:
        it.evidence.faults.append(Fault(kind="kill", target=name, began=at + 28, ended=at + 29))


@plant("S3 missed, and came up in time")
def _(it: Surgery) -> None:
    job = job_like(it, **PLAIN)
    back = next(fault.ended for fault in it.evidence.faults if fault.target == "scheduler-0")
    runs = (row for row in it.runs() if row["jobId"] == job["jobId"])
    held_up = next(row for row in runs if 6 < back - seconds(row["scheduledAt"]) < 24)
    _miss(it, job, held_up, seconds(held_up["createdAt"]))
