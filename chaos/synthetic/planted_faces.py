"""Planted faults of keys, versions, the audit trail, quotas and encryption."""

from collections.abc import Callable

from chaos.records import MOST_JOBS, RATIONED, Operation, Outcome, Trail
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.trails import chain
from chaos.synthetic.world import rfc3339


def _first(it: Surgery, wanted: Callable[[Operation], bool]) -> Operation:
    return next(each for each in it.evidence.operations if wanted(each))


def _move(each: Operation, at: float) -> None:
    each.invoked, each.completed = at, at + each.completed - each.invoked


@plant("S23 let in after it had been revoked")
def _(it: Surgery) -> None:
    revoked = it.answered("revokeKey")[0]
    _move(revoked, revoked.invoked - 10)


@plant("S23 let in after it had been replaced")
def _(it: Surgery) -> None:
    rotated = it.answered("rotateKey")[0]
    (rotated.answer or {})["former"]["expiresAt"] = rfc3339(rotated.completed)


@plant("S23 let in with the key of another tenant")
def _(it: Surgery) -> None:
    foreign = _first(it, lambda each: each.by is not None and each.status == 404)
    foreign.outcome, foreign.status, foreign.answer = Outcome.OK, 200, {"jobId": foreign.job}


@plant("S23 let do what its role does not reach")
def _(it: Surgery) -> None:
    beyond = _first(it, lambda each: each.by is not None and each.kind == "createKey")
    beyond.outcome, beyond.status, beyond.answer = Outcome.OK, 201, {"keyId": "key_of_a_key"}


@plant("S23 an admin has made an operator")
def _(it: Surgery) -> None:
    risen = _first(it, lambda each: each.kind == "createKey" and (each.body or {}).get("role") == "operator")
    risen.outcome, risen.status, risen.answer = Outcome.OK, 201, {"keyId": "key_of_an_operator"}


@plant("S23 refused before it was revoked")
def _(it: Surgery) -> None:
    revoked = it.answered("revokeKey")[0]
    refused = _first(it, lambda each: each.by == revoked.thing and each.status == 401)
    _move(refused, revoked.invoked - 0.5)


@plant("S24 two changes of one version")
def _(it: Surgery) -> None:
    sure = {each.job for each in it.answered("changeJob") if each.match}
    stale = _first(it, lambda each: each.status == 412 and each.job in sure)
    stale.outcome, stale.status, stale.answer = Outcome.OK, 200, {"jobId": stale.job, "version": 3}


@plant("S24 changed to a version of before")
def _(it: Surgery) -> None:
    edit = _first(it, lambda each: each.match is not None and each.outcome is Outcome.OK)
    edit.answer = {"jobId": edit.job, "version": edit.match}


def _trail(it: Surgery) -> Trail:
    return it.dump.audit[RATIONED]


def _entry(it: Surgery, action: str) -> Row:
    return next(each for each in _trail(it).entries if each["action"] == action and each["outcome"] == "done")


def _leave_out(it: Surgery, action: str) -> None:
    _silence(it, _entry(it, action)["request"])


def _silence(it: Surgery, request: str) -> None:
    """Nothing tells of it, and nobody can tell by the chain."""
    for trail in it.dump.audit.values():
        trail.entries[:] = [each for each in trail.entries if each["request"] != request]
        chain(trail)


@plant("S25 a change that nothing tells of")
def _(it: Surgery) -> None:
    _leave_out(it, "changeJob")


@plant("S25 a key that was revoked untold")
def _(it: Surgery) -> None:
    _leave_out(it, "revokeKey")


@plant("S25 a cancel that nothing tells of")
def _(it: Surgery) -> None:
    cancelled = {row["runId"] for row in it.runs() if row["status"] == "cancelled" and row["jobId"] is None}
    cancel = next(each for each in it.answered("cancelRun") if each.run in cancelled)
    _silence(it, cancel.request)


@plant("S25 a replay that nothing tells of")
def _(it: Surgery) -> None:
    _silence(it, it.answered("replayLetters")[0].request)


@plant("S25 a call that was denied, and nothing tells of it")
def _(it: Surgery) -> None:
    made = {(each.answer or {}).get("keyId") for each in it.answered("createKey")}
    _silence(it, _first(it, lambda each: each.status in {401, 403} and each.by in made).request)


@plant("S25 an entry that was rewritten")
def _(it: Surgery) -> None:
    _entry(it, "rotateKey")["actor"] = "somebody else"


@plant("S25 an entry that is gone")
def _(it: Surgery) -> None:
    _trail(it).entries.remove(_entry(it, "createKey"))


@plant("S25 the last entry is gone")
def _(it: Surgery) -> None:
    del _trail(it).entries[-1]


@plant("S25 an entry that was never sealed")
def _(it: Surgery) -> None:
    trail = _trail(it)
    trail.entries[-1] |= {"position": None, "hash": None}
    trail.position, trail.hash = trail.position - 1, trail.entries[-2]["hash"]


@plant("S25 a change that was refused is told")
def _(it: Surgery) -> None:
    refused = _first(it, lambda each: each.status == 412)
    _trail(it).entries.append({**_entry(it, "changeJob"), "request": refused.request})
    chain(_trail(it))


@plant("S26 more jobs than its quota")
def _(it: Surgery) -> None:
    it.evidence.settings["quotas"] = {RATIONED: MOST_JOBS - 1}


@plant("S26 faster than it may")
def _(it: Surgery) -> None:
    it.evidence.settings["pace"] = {"perSecond": 0.05, "burst": 1}


@plant("S26 a job that was refused is there")
def _(it: Surgery) -> None:
    refused = _first(it, lambda each: each.kind == "createJob" and each.status == 429)
    like = it.dump.jobs[RATIONED][0]
    it.dump.jobs[RATIONED].append({**like, "jobId": "job_refused", "name": (refused.body or {})["name"]})


@plant("S26 a run that was refused is there")
def _(it: Surgery) -> None:
    refused = _first(it, lambda each: each.kind == "createRun" and each.status == 429)
    row = next(row for row in it.dump.runs[RATIONED] if row["runId"] in it.submissions())
    made = it.submissions()[row["runId"]]
    # As if it was the refused call, and not the other, that had made the run.
    refused.body = made.body
    made.outcome, made.status, made.answer = Outcome.FAIL, 429, None


@plant("S27 payloads in clear text")
def _(it: Surgery) -> None:
    it.dump.exposed = {"dead_letter": 3}
