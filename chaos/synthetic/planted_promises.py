"""Planted faults of S1 to S4: what was promised is lost, silent, or there twice."""

from chaos.oracle import seconds
from chaos.records import Fault, Operation, Phase
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import QUIET, rfc3339


@plant("S1 run")
def _(it: Surgery) -> None:
    it.erase(it.plain_run())


@plant("S1 job")
def _(it: Surgery) -> None:
    job = it.job_with("every", "overlap")
    it.dump.jobs[it.tenant_of(job)].remove(job)


@plant("S1 change")
def _(it: Surgery) -> None:
    """The edit was acknowledged, and the old definition came back."""
    edit = next(each for each in it.answered("changeJob") if "every" in (each.body or {}))
    next(row for row in it.jobs() if row["jobId"] == edit.job)["every"] = "PT40S"


def _shown_otherwise(field: str, value: object) -> None:
    @plant(f"S1 another {field}")
    def _(it: Surgery) -> None:
        """Of a job that says so; null stands for a field that is not shown any more."""
        calls = (*it.answered("createJob"), *it.answered("changeJob"))
        jobs = {(each.answer or {})["jobId"] for each in calls if field in (each.body or {})}
        job = next(row for row in it.jobs() if row["jobId"] in jobs)
        job[field] = value
        if value is None:
            del job[field]


for _field, _value in {
    "maxRetries": 9,
    "timeoutSeconds": 900.0,
    "delivery": "atLeastOnce",
    "onDisconnect": "finish",
    "queue": "default",
    "priority": "low",
    "handler": {"type": "function", "name": "another"},
    "backoff": {"initial": "PT1S", "factor": 2.0, "max": "PT10M"},
    "requires": None,
    "retry": None,
}.items():
    _shown_otherwise(_field, _value)


@plant("S2 unfinished")
def _(it: Surgery) -> None:
    run = it.plain_run()
    it.forget(run, row=False, phases=(Phase.END,))
    run |= {"status": "running", "state": "running", "finishedAt": None}


@plant("S2 gone")
def _(it: Surgery) -> None:
    it.forget(it.plain_run(), phases=(Phase.END,))


@plant("S2 failed without a failure")
def _(it: Surgery) -> None:
    run = it.plain_run()
    it.forget(run, row=False, phases=tuple(Phase))
    run |= {"status": "failed", "state": "dead", "attempts": 0}


@plant("S2 failed without a failure on record")
def _(it: Surgery) -> None:
    """The harness reads the attempts of every failed run: that there are none says something."""
    run = it.plain_run()
    it.forget(run, row=False, phases=tuple(Phase))
    run |= {"status": "failed", "state": "dead", "attempts": 0}
    it.evidence.settings["attempts"] = "some"


@plant("S2 given up early")
def _(it: Surgery) -> None:
    _fail(it, it.plain_run(), "failed")


@plant("S2 given up early, after a time-out")
def _(it: Surgery) -> None:
    _fail(it, it.plain_run(), "timed_out")


@plant("S2 unknown, not at most once")
def _(it: Surgery) -> None:
    run = it.plain_run()
    _fail(it, run, "unknown")
    it.forget(run, row=False, attempts=False, phases=(Phase.END,))
    run["state"] = "unknown"
    (start,) = it.effects(run, Phase.START)  # it was lost with its worker
    it.evidence.faults.append(
        Fault(kind="kill", target="worker-0", began=start.at, ended=start.at, workers=[start.worker])
    )


@plant("S2 cancelled by nobody")
def _(it: Surgery) -> None:
    run = it.plain_run()
    it.forget(run, row=False, phases=tuple(Phase))
    run |= {"status": "cancelled", "state": "cancelled", "attempts": 0}


@plant("S2 cancelled by nobody, long after an edit")
def _(it: Surgery) -> None:
    edited = {each.job for each in it.answered("changeJob")} - {each.job for each in it.answered("cancelJob")}
    ran = [row for job in it.jobs() if job["jobId"] in edited and job.get("every") for row in it.occurrences(job)]
    _cancel(it, next(row for row in reversed(ran) if it.tries(row) == ["completed"]), 0.01)


@plant("S2 cancelled long after its job was")
def _(it: Surgery) -> None:
    run, cancel = _last_before_a_cancel(it)
    _cancel(it, run, cancel.completed - seconds(run["createdAt"]) + 30)


@plant("S2 made after its job was cancelled, and cancelled")
def _(it: Surgery) -> None:
    run, cancel = _last_before_a_cancel(it)
    later = cancel.completed - seconds(run["createdAt"]) + 1
    twin = it.copy(run, "run_twin", later)
    twin["scheduledAt"] = twin["dueAt"] = twin["createdAt"]
    _cancel(it, twin, 0.01)


@plant("S2 not quiet")
def _(it: Surgery) -> None:
    it.dump.quiet = False


@plant("S3 silence")
def _(it: Surgery) -> None:
    it.erase(it.occurrences(it.job_with("every", "overlap"))[1])


@plant("S3 silence at the edge of an edit")
def _(it: Surgery) -> None:
    """The last instant of the old definition falls between the two."""
    edit = next(each for each in it.answered("changeJob") if "every" in (each.body or {}))
    old = [row for row in it.runs() if row["jobId"] == edit.job and seconds(row["scheduledAt"]) < edit.invoked - 0.5]
    it.erase(max(old, key=lambda row: str(row["scheduledAt"])))


@plant("S3 silence after a resume")
def _(it: Surgery) -> None:
    resume = it.answered("resumeJob")[0]
    new = [row for row in it.runs() if row["jobId"] == resume.job and seconds(row["scheduledAt"]) > resume.completed]
    it.erase(min(new, key=lambda row: str(row["scheduledAt"])))


@plant("S3 missed in quiet times")
def _(it: Surgery) -> None:
    job = it.job_with("every", "overlap")
    run = it.occurrences(job)[1]
    it.erase(run)
    at = seconds(run["scheduledAt"])
    it.dump.missed[it.tenant_of(job)].append({"job": job["jobId"], "from": at, "through": at})


@plant("S3 missed beside a fault of a worker")
def _(it: Surgery) -> None:
    """A dead worker is no reason not to fire."""
    job = it.job_with("every", "overlap")
    kill = next(fault for fault in it.evidence.faults if fault.kind == "kill" and fault.workers)
    runs = [row for row in it.runs() if row["jobId"] == job["jobId"]]
    run = min(runs, key=lambda row: abs(seconds(row["scheduledAt"]) - kill.began))
    it.erase(run)
    at = seconds(run["scheduledAt"])
    it.dump.missed[it.tenant_of(job)].append({"job": job["jobId"], "from": at, "through": at})


@plant("S3 latest not caught up")
def _(it: Surgery) -> None:
    """The whole gap is recorded as missed, the latest instant too."""
    usual = {row["jobId"] for row in it.jobs() if "catchUp" not in row}
    for rows in it.dump.missed.values():
        for gap in (each for each in rows if each["job"] in usual):
            later = [row for row in it.runs() if row["jobId"] == gap["job"] and row["status"] != "skipped"]
            caught_up = [row for row in later if seconds(row["createdAt"]) - seconds(row["scheduledAt"]) > 30]
            following = [row for row in later if row not in caught_up and seconds(row["scheduledAt"]) > gap["through"]]
            skips = [row for row in it.runs() if row["jobId"] == gap["job"] and row["status"] == "skipped"]
            # What follows must have been on time beyond doubt, or the one that is erased need not be the latest.
            lateness = [seconds(row["createdAt"]) - seconds(row["scheduledAt"]) for row in following]
            if len(caught_up) == 1 and lateness and max(lateness) < 28 and not skips:
                it.erase(caught_up[0])
                gap["through"] = seconds(caught_up[0]["scheduledAt"])
                return
    raise LookupError("nothing was caught up")


@plant("S3 skipped although overlap is allowed")
def _(it: Surgery) -> None:
    run = it.occurrences(it.job_with("every", "overlap"))[1]
    it.forget(run, row=False, phases=tuple(Phase))
    run |= {"status": "skipped", "attempts": 0, "finishedAt": run["createdAt"]}


@plant("S3 skipped although nothing was going")
def _(it: Surgery) -> None:
    run = it.occurrences(it.job_with("every"))[1]
    it.forget(run, row=False, phases=tuple(Phase))
    run |= {"status": "skipped", "attempts": 0, "finishedAt": run["createdAt"]}


@plant("S3 one-time")
def _(it: Surgery) -> None:
    jobs = {row["jobId"] for row in it.jobs() if row["scheduleType"] == "one_time" and row["status"] == "pending"}
    it.erase(next(row for row in it.runs() if row["jobId"] in jobs and row["status"] == "completed"))


@plant("S4 instant")
def _(it: Surgery) -> None:
    it.copy(it.occurrences(it.job_with("every", "overlap"))[1], "run_twin", 0.3)


@plant("S4 instant, one of them skipped")
def _(it: Surgery) -> None:
    run = it.occurrences(it.job_with("every", "overlap"))[1]
    again = {**run, "runId": "run_twin", "status": "skipped", "attempts": 0}
    it.dump.runs[it.tenant_of(run)].append(again)


@plant("S4 key")
def _(it: Surgery) -> None:
    """The repetition of an acknowledged call made another run."""
    repeat = next(each for each in it.answered("createRun")[::-1] if each.key and each.invoked > QUIET - 80)
    first = next(row for row in it.runs() if row["runId"] == (repeat.answer or {})["runId"])
    it.copy(first, "run_twin", 0.5)
    repeat.answer = {"runId": "run_twin"}


@plant("S4 run")
def _(it: Surgery) -> None:
    it.copy(it.plain_run(), "run_twin", 0.5)


@plant("S4 job")
def _(it: Surgery) -> None:
    job = it.job_with("scheduleAt")
    it.dump.jobs[it.tenant_of(job)].append({**job, "jobId": "job_twin"})


def _last_before_a_cancel(it: Surgery) -> tuple[Row, Operation]:
    """A run that went well, the last that its schedule made before its job was cancelled."""
    for each in (*it.answered("cancelJob"), *it.answered("deleteJob")):
        ran = [row for row in it.runs() if row["jobId"] == each.job and it.tries(row) == ["completed"]]
        if ran:
            return max(ran, key=lambda row: str(row["createdAt"])), each
    raise LookupError("no job was cancelled that had runs")


def _cancel(it: Surgery, run: Row, after: float) -> None:
    """It never began, and was cancelled so many seconds after it had been made."""
    it.forget(run, row=False, phases=tuple(Phase))
    over = rfc3339(seconds(run["createdAt"]) + after)
    run |= {"status": "cancelled", "state": "cancelled", "attempts": 0, "finishedAt": over}


def _fail(it: Surgery, run: Row, status: str) -> None:
    """Its only attempt, of four that it may have, ended like this, and that was that."""
    it.attempts(run)[0]["status"] = status
    for end in it.effects(run, Phase.END):
        end.failed = True
    run |= {"status": "failed", "state": "dead"}
