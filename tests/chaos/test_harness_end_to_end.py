"""The whole harness against the whole product, for 90 seconds of many kinds of fault: no run is lost."""

import asyncio
import shutil
from collections import Counter
from pathlib import Path

import pytest

from chaos import report
from chaos.client import SUBMITS
from chaos.crashes import fell_over
from chaos.nemesis import Burst, Strike
from chaos.records import Outcome, Phase, load
from chaos.result import result
from chaos.run import Options, run
from chaos.verdict import check

BURSTS = [
    Burst(
        5.0,
        [
            (0.0, Strike("postgresKill", "postgres")),
            (4.0, Strike("reset", "scheduler-1")),
            (5.0, Strike("kill", "worker-0")),
            (5.0, Strike("cutAfterCommit", "api-0")),
            (7.0, Strike("cutBeforeCommit", "worker-2")),
            (8.0, Strike("delay", "api-1")),
            (8.0, Strike("clockJump", "scheduler-0")),
            (9.0, Strike("partition", "worker-2")),
            # Not before the database is back: who has nothing in hand when it stands still comes too late with nothing.
            (14.0, Strike("stop", "worker-1")),
        ],
    ),
    Burst(
        8.0,
        [
            (0.0, Strike("postgresStop", "postgres")),
            (4.0, Strike("stall", "worker-2")),
            (4.0, Strike("halfOpen", "api-0")),
            (5.0, Strike("kill", "scheduler-0")),
            (6.0, Strike("kill", "worker-3")),
            (9.0, Strike("kill", "api-1")),
        ],
    ),
    Burst(4.0, [(0.0, Strike("rollingRestart", "all"))]),
]
SURE = {strike.kind for burst in BURSTS[:2] for _, strike in burst.strikes}
"""All but five kinds. The last burst falls to a machine so slow that the others take all the time there is; for a full
disk, a stopped supervisor, a run that kills its workers and a rush there is no time."""
SLOWEST = 5.0
"""Seconds that a handler takes: long enough that every worker holds something when it is killed."""
WITHIN = {
    "worker kill to restart of its runs": 30.0,
    "scheduler kill to next fire": 20.0,
    "database accepting to first start": 15.0,
}
"""Seconds; more than we promise, because other tests take the machine's time meanwhile."""

ALWAYS = (
    "replayed letters by hand",
    "discarded letters by hand",
    "snoozes",
    "effects in the run's transaction",
    "runs held back by a paused queue",
    "attempts of a remote worker",
    "committed by its caller",
    "rolled back by its caller",
    "made way for a newer run",
    "revoked keys refused",
    "replaced keys refused",
    "keys of others refused",
    "changes refused as stale",
    "audit entries in their chains",
    "jobs refused by a quota",
    "calls refused by a rate limit",
    "payloads stored encrypted",
    "data keys replaced",
    "keys refused for another request",
    "calls that the guard refused",
    "secrets said in a result",
    "secrets said in an error",
)
"""Rare paths that no fault is needed for."""


@pytest.mark.timeout(420)
def test_nothing_is_lost_in_ninety_seconds_of_chaos(tmp_path: Path):
    evidence_folder, said = tmp_path / "evidence", []
    evidence_folder.mkdir()
    options = Options(seed=3, seconds=90, folder=evidence_folder, rate=200, bursts=BURSTS, slowest=SLOWEST)
    done = asyncio.run(run(options, said.append))
    evidence = load(evidence_folder)

    assert not SURE - {fault.kind for fault in evidence.faults} - done.lacking.keys()
    assert evidence.dump.quiet
    _nothing_is_lost(evidence, done.acknowledged)

    verdict = check(evidence)
    assert verdict.violations == 0, verdict.to_markdown()
    recovery = verdict.measures["L2"]["promised"]
    assert not [name for name, within in WITHIN.items() if not recovery[name].get("worst", within) < within], recovery
    assert set(verdict.idle) <= {"S13", "S31"}
    assert verdict.rare["lease take-overs"]
    assert not [path for path in ALWAYS if not verdict.rare[path]]
    assert all(count for path, count in verdict.rare.items() if path.startswith("commands"))
    came = result(verdict, done, fell_over(evidence_folder), evidence.settings)
    assert not came.failed, came
    report.write(tmp_path / "report", *report.make(evidence, done, verdict, came, 1.0), verdict)
    assert (tmp_path / "report" / "report.md").read_text().startswith("# Chaos run, seed 3")
    shutil.rmtree(evidence_folder, ignore_errors=True)


def _nothing_is_lost(evidence, acknowledged: int) -> None:
    """The plainest of all checks, apart from the checker: who was told that a run exists finds it, at its end."""
    promised = {
        run
        for operation in evidence.operations
        if operation.kind in SUBMITS and operation.outcome is Outcome.OK and operation.answer
        for run in operation.answer.get("runIds") or [operation.answer.get("runId")]
        if run is not None
    }
    assert len(promised) == acknowledged > 2_000
    states = {run["runId"]: run["status"] for runs in evidence.dump.runs.values() for run in runs}
    assert promised <= states.keys()
    assert Counter(states[run] for run in promised).keys() <= {"completed", "failed", "cancelled"}
    ended = {effect.run for effect in evidence.effects if effect.phase is Phase.END and not effect.failed}
    assert {run for run in promised if states[run] == "completed"} <= ended
