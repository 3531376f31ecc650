"""Planted faults of S12: an attempt is told to have ended otherwise, elsewhere or earlier than it did."""

from chaos.oracle import seconds
from chaos.records import Fault, Phase
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import BOUNDS, rfc3339

LONG = 80.0
"""Seconds after its end at which something happens to a worker, too late to explain anything."""


@plant("S12 ended well, and is told to have failed")
def _(it: Surgery) -> None:
    run = it.retried_run("failed", "completed")
    failed = it.attempts(run)[0]
    for end in it.effects(run, Phase.END):
        if end.fence == failed["fence"]:
            end.failed = False


@plant("S12 ended well, and is told to have run out of time")
def _(it: Surgery) -> None:
    run = it.retried_run("failed", "completed")
    failed = it.attempts(run)[0]
    failed["status"] = "timed_out"
    for end in it.effects(run, Phase.END):
        if end.fence == failed["fence"]:
            end.failed = False


@plant("S12 ended well, and is told to be unknown")
def _(it: Surgery) -> None:
    _unknown(it, it.plain_run())


@plant("S12 unknown, and nobody had begun it")
def _(it: Surgery) -> None:
    run = it.plain_run()
    _unknown(it, run)
    it.forget(run, row=False, attempts=False, phases=tuple(Phase))


@plant("S12 completed in advance")
def _(it: Surgery) -> None:
    for end in it.effects(it.plain_run(), Phase.END):
        end.at += 8.0
    it.sort()


@plant("S12 completed in advance, by one of several")
def _(it: Surgery) -> None:
    """What the first had done, when it had lost its lease, is taken for the second one's, who goes on."""
    run = it.retried_run("failed", "completed")
    for end in it.effects(run, Phase.END):
        if not end.failed:
            end.at += 8.0
    it.sort()


@plant("S12 another attempt than was told")
def _(it: Surgery) -> None:
    it.attempts(it.plain_run())[0]["attempt"] = 77


@plant("S12 a worker of two processes")
def _(it: Surgery) -> None:
    run = it.plain_run()
    for effect in it.effects(run):
        effect.worker = "worker-9.9"
    known = {each.worker for each in it.evidence.effects}
    others = (row for row in it.runs() if row["runId"] != run["runId"] and it.effects(row, Phase.START))
    other = next(row for row in others if it.effects(row)[0].worker in known - {"", "worker-9.9"})
    it.attempts(run)[0]["workerId"] = it.attempts(other)[0]["workerId"]


@plant("S12 unknown, and its worker was lost much later")
def _(it: Surgery) -> None:
    run = it.plain_run()
    _unknown(it, run)
    (row,) = it.attempts(run)
    killed = seconds(row["finishedAt"]) + LONG
    row["finishedAt"] = run["finishedAt"] = rfc3339(killed + BOUNDS.lease)
    boot = it.effects(run, Phase.START)[0].worker
    it.evidence.faults.append(Fault(kind="kill", target="worker-0", began=killed, ended=killed, workers=[boot]))


def _unknown(it: Surgery, run: Row) -> None:
    (it.submissions()[run["runId"]].body or {})["delivery"] = "atMostOnce"
    it.attempts(run)[0]["status"] = "unknown"
    run["status"] = run["state"] = "failed"
