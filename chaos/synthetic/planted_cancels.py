"""Planted faults of cancels: what began, went on or ended otherwise than its owner was told."""

import copy

from chaos.oracle import seconds
from chaos.records import Operation, Phase
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import rfc3339


def _cancel(it: Surgery, told: str, status: str, tries: int) -> tuple[Row, Operation]:
    """A run with so many attempts, and the call that cancelled it: what that was told, and what became of it."""
    rows = {row["runId"]: row for row in it.runs()}
    for each in it.answered("cancelRun"):
        row = rows[each.run or ""]
        if ((each.answer or {})["status"], row["status"], len(it.attempts(row))) == (told, status, tries):
            return row, each
    raise LookupError(f"nothing was told to be {told}, and {status}")


def _begin(it: Surgery, run: Row, at: float, fence: int) -> None:
    """It was begun at this moment, and the product does not hide it."""
    start = copy.copy(it.effects(it.plain_run(), Phase.START)[0])
    sample = it.submissions()[run["runId"]]
    start.run, start.tenant, start.at, start.fence, start.nonce = run["runId"], sample.tenant, at, fence, "late"
    start.scheduled_at, start.payload, start.attempt = seconds(run["scheduledAt"]), "", run["attempts"] + 1
    it.add(start)
    attempt = copy.copy(it.attempts(it.plain_run())[0])
    attempt |= {"runId": run["runId"], "fence": fence, "attempt": run["attempts"] + 1, "status": "cancelled"}
    attempt |= {"startedAt": rfc3339(at), "finishedAt": rfc3339(at + 0.1)}
    it.dump.attempts[sample.tenant].append(attempt)
    run["attempts"] += 1


@plant("S21 began after it had been cancelled")
def _(it: Surgery) -> None:
    run, _ = _cancel(it, "cancelled", "cancelled", 0)
    _begin(it, run, seconds(run["finishedAt"]) + 0.5, 900_000)


@plant("S21 went on after it had been cancelled")
def _(it: Surgery) -> None:
    run, _ = _cancel(it, "cancelled", "cancelled", 1)
    beat = copy.copy(it.effects(run, Phase.BEAT)[0])
    beat.at = seconds(run["finishedAt"]) + 0.5
    it.add(beat)


@plant("S21 told to be cancelled, and completed")
def _(it: Surgery) -> None:
    _, call = _cancel(it, "completed", "completed", 1)
    call.answer = {**(call.answer or {}), "status": "cancelled"}


@plant("S21 tried again after it had been asked to stop")
def _(it: Surgery) -> None:
    run, call = _cancel(it, "running", "cancelled", 1)
    (attempt,) = it.attempts(run)
    attempt["status"] = "failed"
    end = copy.copy(it.effects(run, Phase.START)[0])
    end.phase, end.failed, end.at = Phase.END, True, seconds(attempt["finishedAt"]) - 0.01
    it.add(end)
    _begin(it, run, seconds((call.answer or {})["cancelRequestedAt"]) + 1.0, 900_000)


@plant("S21 went on")
def _(it: Surgery) -> None:
    run, call = _cancel(it, "running", "cancelled", 1)
    beat = copy.copy(it.effects(run, Phase.BEAT)[0])
    beat.at = seconds((call.answer or {})["stopsBy"]) + 0.5
    it.add(beat)


@plant("S21 over later than was told")
def _(it: Surgery) -> None:
    run, call = _cancel(it, "running", "cancelled", 1)
    late = rfc3339(seconds((call.answer or {})["stopsBy"]) + 0.5)
    run["finishedAt"] = it.attempts(run)[0]["finishedAt"] = late


@plant("S21 not heard")
def _(it: Surgery) -> None:
    _, call = _cancel(it, "running", "cancelled", 1)
    call.answer = {name: value for name, value in (call.answer or {}).items() if name != "stopsBy"}
