"""Planted faults of S28, and of S7: stopped for no reason, too early, or not at all."""

from chaos.oracle import seconds
from chaos.records import Fault, Phase
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import rfc3339


@plant("S28 stopped, and is told to have failed")
def _(it: Surgery) -> None:
    _silence(it, it.retried_run("failed", "completed"))


@plant("S28 handed back for no reason")
def _(it: Surgery) -> None:
    run = it.retried_run("failed", "completed")
    first, second = _silence(it, run)
    first["status"] = "released"
    second["attempt"], run["attempts"] = 1, 1
    for effect in it.effects(run):
        effect.attempt = 1


@plant("S28 out of time too soon")
def _(it: Surgery) -> None:
    first, _ = _silence(it, it.retried_run("failed", "completed"))
    first["status"] = "timed_out"


@plant("S28 its time was up, and it went on")
def _(it: Surgery) -> None:
    run = it.plain_run()
    (it.submissions()[run["runId"]].body or {})["timeoutSeconds"] = 2.0
    (end,) = it.effects(run, Phase.END)
    took = 9.0 - (end.at - it.effects(run, Phase.START)[0].at)
    for row in (run, *it.attempts(run)):
        row["finishedAt"] = rfc3339(seconds(row["finishedAt"]) + took)
    end.at += took
    it.sort()


@plant("S7 lost, and all that was away was the database")
def _(it: Surgery) -> None:
    """An outage longer than a lease kills nobody."""
    run = it.retried_run("failed", "completed")
    first, _ = _silence(it, run)
    first["status"] = "lost"
    begun = it.effects(run, Phase.START)[0]
    away = Fault(kind="outage", target="postgres", began=begun.at + 0.01, ended=begun.at + 20, workers=[begun.worker])
    it.evidence.faults.append(away)


def _silence(it: Surgery, run: Row) -> list[Row]:
    """Its attempts, of which the first has never said that it is over."""
    attempts = it.attempts(run)
    for end in it.effects(run, Phase.END):
        if end.failed:
            it.evidence.effects.remove(end)
    return attempts
