"""The whole harness against the whole product, briefly: a worker, the database and a commit are lost; no run is."""

import asyncio
import shutil
from collections import Counter
from pathlib import Path

import pytest

from chaos import figures, report
from chaos.nemesis import Strike
from chaos.records import Outcome, Phase, load
from chaos.run import Options, run
from chaos.verdict import check

STRIKES = [
    Strike("kill", "worker-0"),
    Strike("cutAfterCommit", "api-0"),
    Strike("postgresKill", "postgres"),
    Strike("cutBeforeCommit", "worker-1"),
]


@pytest.mark.timeout(240)
def test_nothing_is_lost_when_a_worker_the_database_and_a_commit_are(tmp_path: Path):
    evidence_folder, said = tmp_path / "evidence", []
    evidence_folder.mkdir()
    options = Options(seed=3, seconds=40, folder=evidence_folder, rate=250, only=STRIKES)
    done = asyncio.run(run(options, said.append))
    evidence = load(evidence_folder)

    assert {fault.kind for fault in evidence.faults} == {strike.kind for strike in STRIKES}
    assert evidence.dump.quiet
    _nothing_is_lost(evidence, done.acknowledged)
    taken_over = figures.recovery(evidence)["worker kill to restart of its runs"]
    assert taken_over["cases"] == 0 or taken_over["worst"] < 30

    verdict = check(evidence)
    assert verdict.violations == 0, verdict.to_markdown()
    report.write(tmp_path / "report", report.make(evidence, done, verdict), evidence, verdict)
    assert (tmp_path / "report" / "report.md").read_text().startswith("# Chaos run, seed 3")
    shutil.rmtree(evidence_folder, ignore_errors=True)


def _nothing_is_lost(evidence, acknowledged: int) -> None:
    """The plainest of all checks, apart from the checker: who was told that a run exists finds it, at its end."""
    promised = {
        run
        for operation in evidence.operations
        if operation.outcome is Outcome.OK and operation.answer
        for run in operation.answer.get("runIds") or [operation.answer.get("runId")]
        if run is not None
    }
    assert len(promised) == acknowledged > 2_000
    states = {run["runId"]: run["status"] for runs in evidence.dump.runs.values() for run in runs}
    assert promised <= states.keys()
    assert Counter(states[run] for run in promised).keys() <= {"completed", "failed", "cancelled"}
    ended = {effect.run for effect in evidence.effects if effect.phase is Phase.END and not effect.failed}
    assert {run for run in promised if states[run] == "completed"} <= ended
