"""Planted faults of commands that leave somebody behind, and of jobs whose older runs do not make way."""

import copy

from chaos.oracle import seconds
from chaos.records import Phase
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import BOUNDS, rfc3339


def _command(it: Surgery, tried: str) -> Row:
    """A command that left somebody behind, and whose only attempt came to this end."""
    given = {name: each.body or {} for name, each in it.submissions().items()}
    left = [row for row in it.runs() if given.get(row["runId"], {}).get("payload", {}).get("leaves")]
    return next(row for row in left if it.tries(row) == [tried])


def _alive(it: Surgery, run: Row, at: float) -> None:
    beat = copy.copy(it.effects(run)[0])
    beat.phase, beat.at = Phase.BEAT, at
    it.add(beat)


def _superseded(it: Surgery) -> list[Row]:
    return it.occurrences(next(row for row in it.jobs() if row.get("overlap") == "cancelPrevious"))


@plant("S31 alive after its command had ended")
def _(it: Surgery) -> None:
    run = _command(it, "completed")
    _alive(it, run, seconds(run["finishedAt"]) + BOUNDS.guardian + 0.5)


@plant("S31 alive after its command had run out of time")
def _(it: Surgery) -> None:
    run = _command(it, "timed_out")
    _alive(it, run, seconds(run["finishedAt"]) + BOUNDS.guardian + 0.5)


@plant("S31 alive after its worker had been killed")
def _(it: Surgery) -> None:
    kill = next(fault for fault in it.evidence.faults if fault.kind == "kill" and fault.workers)
    struck = (
        row for row in it.runs() if any(each.isolated and each.worker in kill.workers for each in it.effects(row))
    )
    _alive(it, next(struck), kill.began + BOUNDS.guardian + 0.5)


@plant("S31 there when nothing went on any more")
def _(it: Surgery) -> None:
    it.dump.left = ["4711 (/usr/bin/report)"]


@plant("S32 went on although a newer one had come")
def _(it: Surgery) -> None:
    *_, older, newer = _superseded(it)
    late = BOUNDS.straggler + BOUNDS.stop + 1
    for row in (older, it.attempts(older)[0]):
        row["finishedAt"] = rfc3339(seconds(row["finishedAt"]) + late)
    _alive(it, older, seconds(older["finishedAt"]) - 0.1)
    it.move(newer, late)


@plant("S9 began before the one was over that made way for it")
def _(it: Surgery) -> None:
    older, newer, *_ = _superseded(it)
    it.effects(newer, Phase.START)[0].at = seconds(older["finishedAt"]) - 0.3
    it.sort()


@plant("S2 cancelled though no newer one had come")
def _(it: Surgery) -> None:
    *_, last = _superseded(it)
    it.attempts(last)[0]["status"] = last["status"] = "cancelled"
