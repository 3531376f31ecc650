"""Planted faults of S5 to S10: ran what was not to run, wrote what was not to be written, too often, too early."""

import copy

from chaos.oracle import seconds
from chaos.records import Effect, Fault, Operation, Phase
from chaos.synthetic.surgery import Surgery, plant
from chaos.synthetic.world import BOUNDS, rfc3339


@plant("S5 instant")
def _(it: Surgery) -> None:
    run = it.copy(it.occurrences(it.job_with("every", "overlap"))[1], "run_twin", 1.7)
    _relabel(it, run, seconds(run["scheduledAt"]) + 1.5)


@plant("S5 paused")
def _(it: Surgery) -> None:
    """An instant of the time when the job was paused ran all the same."""
    pause = _pause(it, recurs=True)
    pause.answer = None  # else S20 had a word to say, too
    job = next(row for row in it.jobs() if row["jobId"] == pause.job)
    before = max((row for row in it.runs() if row["jobId"] == job["jobId"] and _by(row, pause.invoked)), key=_at)
    run = it.copy(before, "run_twin", 50.0)
    _relabel(it, run, _at(before) + 50.0)


@plant("S5 begun behind a closed gate")
def _(it: Surgery) -> None:
    """What was handed in by hand before the pause began long after it."""
    pause = _pause(it, recurs=False)
    pause.answer = None
    _begin(it, pause, pause.completed + 40)


@plant("S20 begun of a paused job")
def _(it: Surgery) -> None:
    """Later than the API had said. It said so late: for all that S5 knows the job had been paused just before."""
    pause = _pause(it, recurs=False)
    holds = seconds((pause.answer or {})["holdsBy"])
    pause.completed += 6.0
    _begin(it, pause, holds + 5.5)  # its own time has come by then


@plant("S5 unknown run of a job")
def _(it: Surgery) -> None:
    it.forget(it.occurrences(it.job_with("every", "overlap"))[1])


@plant("S5 unknown run")
def _(it: Surgery) -> None:
    run = it.copy(it.plain_run(), "run_twin", 0.5)
    for effect in it.effects(run):
        effect.payload = "of nobody"


@plant("S5 unknown job")
def _(it: Surgery) -> None:
    job = it.job_with("scheduleAt")
    it.dump.jobs[it.tenant_of(job)].append({**job, "jobId": "job_twin", "name": "of nobody"})


@plant("S5 payload")
def _(it: Surgery) -> None:
    it.effects(it.plain_run(), Phase.START)[0].payload = "of another"


@plant("S5 payload of an old definition")
def _(it: Surgery) -> None:
    edits = (each for each in it.answered("changeJob") if each.match is None)
    edit = next(each for each in edits if "payload" in (each.body or {}))
    runs = sorted((row for row in it.runs() if row["jobId"] == edit.job), key=_at)
    old = it.effects(runs[0], Phase.START)[0].payload
    for effect in it.effects(runs[-3]):
        effect.payload = old


@plant("S6 zombie")
def _(it: Surgery) -> None:
    """What the zombie reported was taken, although another worker had the run by then."""
    run = it.retried_run("lost", "completed")
    zombie, other = it.attempts(run)
    zombie |= {"status": "failed", "finishedAt": rfc3339(seconds(other["startedAt"]) + 1.0)}


@plant("S6 completed, then failed")
def _(it: Surgery) -> None:
    it.retried_run("failed", "completed")["status"] = "failed"


@plant("S6 went on after its end")
def _(it: Surgery) -> None:
    run = it.retried_run("lost", "completed")
    last = it.attempts(run)[-1]
    it.dump.attempts[it.tenant_of(run)].append({**last, "fence": last["fence"] + 100_000, "status": "cancelled"})
    run["attempts"] += 1


@plant("S7 unexplained")
def _(it: Surgery) -> None:
    """A worker was declared dead that nothing had happened to."""
    _taken_for_dead(it)


@plant("S7 unexplained by a wrong clock")
def _(it: Surgery) -> None:
    """Only the database's time says when a lease is over."""
    _strike_in_vain(it, "clockJump", _taken_for_dead(it))


@plant("S7 unexplained by a slow wire")
def _(it: Surgery) -> None:
    """What comes some tenths of a second later costs nobody a lease of many seconds."""
    _strike_in_vain(it, "delay", _taken_for_dead(it))


@plant("S7 twice")
def _(it: Surgery) -> None:
    start = it.effects(it.plain_run(), Phase.START)[0]
    again = copy.copy(start)
    again.nonce, again.at = "again", start.at + 0.001
    it.add(again)


@plant("S7 retries")
def _(it: Surgery) -> None:
    run = it.retried_run("failed", "failed", "timed_out", "completed")
    body = it.submissions()[run["runId"]].body
    if body is not None:
        body["maxRetries"] = 1


@plant("S8 begun twice")
def _(it: Surgery) -> None:
    """The worker died, which excuses a duplicate, but not of a run that may begin once at most."""
    run = it.retried_run("lost", "completed")
    body = it.submissions()[run["runId"]].body
    if body is not None:
        body["delivery"] = "atMostOnce"


@plant("S9 zombie")
def _(it: Surgery) -> None:
    """The fenced-out handler did not stop in time, and its key was another's by then."""
    lost = next(
        row for row in it.runs() if it.tries(row) == ["lost", "completed"] and it.effects(row)[0].concurrency_key
    )
    end = copy.copy(it.effects(lost)[0])
    stop = next(fault for fault in it.evidence.faults if fault.kind == "stop")
    end.phase, end.at = Phase.END, stop.ended + BOUNDS.guardian + 0.5
    it.add(end)


@plant("S9 outlived")
def _(it: Surgery) -> None:
    """Nobody ended what a stopped worker had begun in a process of its own, which was not stopped with it."""
    stop = next(fault for fault in it.evidence.faults if fault.kind == "stop")
    stop.kind = "stopSupervisor"
    _beats(it, stop, stop.ended - 1)


@plant("S9 outlived a stand-still")
def _(it: Surgery) -> None:
    """The same, though it could go on itself by then, and whoever should have ended it could, too."""
    stop = next(fault for fault in it.evidence.faults if fault.kind == "stop")
    _beats(it, stop, stop.ended + BOUNDS.guardian + 0.5)


def _beats(it: Surgery, stop: Fault, at: float) -> None:
    begun = next(each for each in it.evidence.effects if each.isolated and each.worker in stop.workers)
    beat = copy.copy(begun)
    beat.phase, beat.at = Phase.BEAT, at
    it.add(beat)


@plant("S9 overlap")
def _(it: Surgery) -> None:
    """A run of an exclusive job was still going when the next one began."""
    first, second = it.occurrences(it.job_with("every"))[1:3]
    longer = seconds(second["finishedAt"]) + 1 - seconds(first["finishedAt"])
    for row in (first, *it.attempts(first)):
        row["finishedAt"] = rfc3339(seconds(row["finishedAt"]) + longer)
    it.effects(first, Phase.END)[0].at += longer
    it.sort()


@plant("S10 early")
def _(it: Surgery) -> None:
    it.move(it.plain_run("runAt"), -1.5)


def _taken_for_dead(it: Surgery) -> Effect:
    """Let others begin a run that its worker had begun, and was about to end; returns its first start."""
    run = it.plain_run()
    (first,) = it.attempts(run)
    start, end = it.effects(run)
    again = copy.copy(start)
    again.fence, again.nonce, again.at, end.at = start.fence + 100_000, "again", start.at + 20, start.at + 21
    end.fence, end.nonce = again.fence, "again"
    again.attempt = end.attempt = 2
    it.add(again)
    last = {**first, "fence": again.fence, "attempt": 2, "startedAt": rfc3339(again.at)}
    last["finishedAt"] = run["finishedAt"] = rfc3339(end.at + 0.01)
    it.dump.attempts[it.tenant_of(run)].append(last)
    first |= {"status": "lost", "finishedAt": rfc3339(start.at + 18)}
    run["attempts"] = 2
    return start


def _strike_in_vain(it: Surgery, kind: str, start: Effect) -> None:
    """Something happened to the worker meanwhile that cannot have cost it the run."""
    it.evidence.faults.append(
        Fault(kind=kind, target="worker-1", began=start.at - 1, ended=start.at + 9, workers=[start.worker])
    )


def _relabel(it: Surgery, run: dict[str, object], at: float) -> None:
    run["scheduledAt"] = rfc3339(at)
    for effect in it.effects(run):
        effect.scheduled_at = at


def _pause(it: Surgery, *, recurs: bool) -> Operation:
    return next(each for each in it.answered("pauseJob") if _recurs(it, each.job) is recurs)


def _begin(it: Surgery, pause: Operation, at: float) -> None:
    """Let a run of the paused job have begun then, and ended well."""
    run = next(row for row in it.runs() if row["jobId"] == pause.job)
    other = it.plain_run()
    for effect in it.effects(other):
        twin = copy.copy(effect)
        twin.run, twin.job, twin.at, twin.payload = run["runId"], run["jobId"], at, ""
        twin.scheduled_at = _at(run)
        twin.tenant = it.tenant_of(run)
        it.add(twin)
    row = {**it.attempts(other)[0], "runId": run["runId"], "jobId": run["jobId"]}
    times = {"startedAt": rfc3339(at), "finishedAt": rfc3339(at + 0.1)}
    it.dump.attempts[it.tenant_of(run)].append({**row, **times})
    run |= {"status": "completed", "attempts": 1, "finishedAt": rfc3339(at + 0.1)}


def _recurs(it: Surgery, job: str | None) -> bool:
    return any(row["jobId"] == job and row["scheduleType"] == "recurring" for row in it.jobs())


def _at(row: dict[str, object]) -> float:
    return seconds(str(row["scheduledAt"]))


def _by(row: dict[str, object], at: float) -> bool:
    return _at(row) < at
