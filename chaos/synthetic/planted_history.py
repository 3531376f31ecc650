"""Planted faults of S11 to S13: told to the wrong one, told wrongly, or not told."""

import copy

from chaos.oracle import seconds
from chaos.records import Fault, Phase
from chaos.synthetic.surgery import Surgery, plant
from chaos.synthetic.world import TENANTS, rfc3339


@plant("S11 effect")
def _(it: Surgery) -> None:
    start = it.effects(it.plain_run(), Phase.START)[0]
    start.tenant = _other(start.tenant)


@plant("S11 row")
def _(it: Surgery) -> None:
    run = it.plain_run()
    tenant = it.tenant_of(run)
    it.dump.runs[tenant].remove(run)
    it.dump.runs[_other(tenant)].append(run)


@plant("S11 attempt")
def _(it: Surgery) -> None:
    run = it.plain_run()
    (row,) = it.attempts(run)
    it.dump.attempts[it.tenant_of(run)].remove(row)
    it.dump.attempts[_other(it.tenant_of(run))].append(row)


@plant("S11 job")
def _(it: Surgery) -> None:
    job = it.job_with("scheduleAt")
    it.dump.jobs[_other(it.tenant_of(job))].append({**job})


@plant("S11 webhook")
def _(it: Surgery) -> None:
    receipt = it.evidence.settings["webhooks"][0]
    receipt["tenant"] = _other(receipt["tenant"])


@plant("S12 answer")
def _(it: Surgery) -> None:
    edit = next(each for each in it.answered("changeJob") if "every" in (each.body or {}))
    edit.answer = {**(edit.answer or {}), "every": "PT999S"}


@plant("S12 answer about how it is run")
def _(it: Surgery) -> None:
    edit = next(each for each in it.answered("changeJob") if "maxRetries" in (each.body or {}))
    edit.answer = {**(edit.answer or {}), "maxRetries": 5}


@plant("S12 gap")
def _(it: Surgery) -> None:
    it.forget(it.plain_run())


@plant("S12 run listed twice")
def _(it: Surgery) -> None:
    run = it.plain_run()
    it.dump.runs[it.tenant_of(run)].append({**run})


@plant("S12 attempt listed twice")
def _(it: Surgery) -> None:
    run = it.plain_run()
    it.dump.attempts[it.tenant_of(run)].append({**it.attempts(run)[0]})
    run["attempts"] += 1


def _is_idle(it: Surgery, job: str, at: float) -> bool:
    """Whether nothing of this job was there at that moment."""
    mine = (row for row in it.runs() if row["jobId"] == job)
    return not any(seconds(row["createdAt"]) - 1 < at < seconds(row["finishedAt"]) + 1 for row in mine)


@plant("S12 skipped, and ran")
def _(it: Surgery) -> None:
    jobs = [job for job in it.jobs() if job.get("every") is not None and not job.get("dependsOn")]  # S22 knows graphs
    plain = {job["jobId"] for job in jobs if not str(job.get("overlap")).startswith("queue")}  # and S9 lines
    skips = (row for row in it.runs() if row["status"] == "skipped" and row["jobId"] in plain)
    run = next(row for row in skips if _is_idle(it, row["jobId"], seconds(row["finishedAt"]) + 20))  # or S9 knows it
    start = copy.copy(it.effects(it.plain_run(), Phase.START)[0])
    start.run, start.job, start.tenant, start.payload = run["runId"], run["jobId"], it.tenant_of(run), ""
    start.scheduled_at = seconds(run["scheduledAt"])
    start.fence, start.at = start.fence + 100_000, seconds(run["finishedAt"]) + 20
    it.add(start)


@plant("S12 failed and never began")
def _(it: Surgery) -> None:
    """Something had happened just then, though to nobody who has a part in it."""
    run = it.retried_run("failed", "completed")
    failed = it.attempts(run)[0]
    it.evidence.effects[:] = [each for each in it.evidence.effects if each.fence != failed["fence"]]
    ended = seconds(failed["finishedAt"])
    it.evidence.faults.append(Fault(kind="reset", target="api-0", began=ended - 0.1, ended=ended))


@plant("S12 success without an end")
def _(it: Surgery) -> None:
    it.forget(it.plain_run(), row=False, attempts=False, phases=(Phase.END,))


@plant("S12 success after a failed end")
def _(it: Surgery) -> None:
    it.effects(it.plain_run(), Phase.END)[0].failed = True


@plant("S12 success by another fence")
def _(it: Surgery) -> None:
    """The attempt that is on record as the successful one is not the one that came to its end."""
    run = it.retried_run("failed", "completed")
    failed, completed = it.attempts(run)
    failed["status"], completed["status"] = "completed", "failed"
    failed["fence"], completed["fence"] = completed["fence"], failed["fence"]
    for end in it.effects(run, Phase.END):
        end.failed = not end.failed
    for effect in it.effects(run, Phase.END)[1:]:
        effect.failed = True


@plant("S12 success without an attempt")
def _(it: Surgery) -> None:
    run = it.plain_run()
    it.attempts(run)[0]["status"] = "unknown"


@plant("S12 count")
def _(it: Surgery) -> None:
    it.plain_run()["attempts"] += 1


@plant("S12 attempt that never began")
def _(it: Surgery) -> None:
    run = it.plain_run()
    (row,) = it.attempts(run)
    early = rfc3339(seconds(row["startedAt"]) - 0.001)
    ghost = {**row, "fence": row["fence"] - 1, "status": "failed", "startedAt": early, "finishedAt": early}
    it.dump.attempts[it.tenant_of(run)].append(ghost)
    run["attempts"] += 1


@plant("S12 attempt that is not on record")
def _(it: Surgery) -> None:
    run = it.retried_run("failed", "completed")
    it.dump.attempts[it.tenant_of(run)].remove(it.attempts(run)[0])
    run["attempts"] -= 1


@plant("S12 attempts that were not read, of a run that was tried again")
def _(it: Surgery) -> None:
    run = it.retried_run("failed", "completed")
    it.forget(run, row=False, phases=())
    it.evidence.settings["attempts"] = "some"


@plant("S12 times")
def _(it: Surgery) -> None:
    (row,) = it.attempts(it.plain_run())
    row["startedAt"] = rfc3339(seconds(row["finishedAt"]) + 1)


@plant("S12 label")
def _(it: Surgery) -> None:
    run = it.occurrences(it.job_with("every", "overlap"))[1]
    for effect in it.effects(run):
        effect.scheduled_at = seconds(run["scheduledAt"]) - 1


@plant("S12 mislabelled")
def _(it: Surgery) -> None:
    """By its label the run belongs to an instant; by its time it belongs to none."""
    it.move(it.occurrences(it.job_with("every", "overlap", "scheduleAt"))[1], 45)


@plant("S13 silence")
def _(it: Surgery) -> None:
    receipts = it.evidence.settings["webhooks"]
    run = receipts[0]["run"]
    it.evidence.settings["webhooks"] = [each for each in receipts if each["run"] != run]


@plant("S13 two bodies")
def _(it: Surgery) -> None:
    it.evidence.settings["webhooks"][1]["body"] = "another"


def _other(tenant: str) -> str:
    return TENANTS[1 - TENANTS.index(tenant)]
