"""Three schedulers under fire: the short form of the proof, and that its judge sees what it is there for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from chaos.schedulers.judge import PROMISED, SECOND, Job, Missed, Run, Spell, judge
from chaos.topology import ROOT

JOB = Job(id=7, schedule=1, phase=250_000, after=10 * SECOND)
UNTIL = 20 * SECOND
INSTANTS = [number * SECOND + 250_000 for number in range(10, 20)]


def _runs(*instants: int, late: int = 0) -> list[Run]:
    return [Run(JOB.id, at, at + late) for at in instants]


def test_the_instants_of_a_job_begin_after_its_creation():
    assert list(JOB.instants(UNTIL)) == INSTANTS
    assert next(iter(JOB._replace(after=INSTANTS[0]).instants(UNTIL))) == INSTANTS[1]
    assert next(iter(JOB._replace(after=INSTANTS[0] - 1).instants(UNTIL))) == INSTANTS[0]
    assert next(iter(JOB._replace(phase=UNTIL + 250_000).instants(UNTIL))) == INSTANTS[0]


def test_every_instant_once_is_no_violation():
    verdict = judge([JOB], _runs(*INSTANTS), [], UNTIL)
    assert (verdict.violations, verdict.expected, verdict.fired) == (0, 10, 10)


def test_what_is_lost_doubled_or_invented_is_seen():
    verdict = judge([JOB], _runs(*INSTANTS[1:], INSTANTS[4], INSTANTS[2] + 1), [], UNTIL)
    assert verdict.lost == [(7, INSTANTS[0])]
    assert verdict.doubled == [(7, INSTANTS[4])]
    assert verdict.invented == [(7, INSTANTS[2] + 1)]


def test_what_the_ledger_calls_missed_is_explained_and_only_that():
    explained = Missed(JOB.schedule, INSTANTS[2], INSTANTS[4])
    verdict = judge([JOB], _runs(*INSTANTS[:2], *INSTANTS[6:]), [explained], UNTIL)
    assert verdict.explained == 3
    assert verdict.lost == [(7, INSTANTS[5])]
    assert judge([JOB], [], [explained._replace(schedule=2)], UNTIL).explained == 0


def test_later_than_promised_is_a_violation_while_somebody_was_well():
    runs = _runs(*INSTANTS, late=PROMISED + 1)
    hurt = [Spell("one", 0, UNTIL + 2 * PROMISED)]
    assert len(judge([JOB], runs, [], UNTIL, hurt, ["one", "two"]).late) == 10
    assert judge([JOB], runs, [], UNTIL, hurt, ["one"]).late == []
    assert judge([JOB], _runs(*INSTANTS, late=PROMISED), [], UNTIL).late == []


def test_who_was_well_for_long_enough_at_any_time_before_the_run_was_made_could_have_made_it():
    at = INSTANTS[0]
    spells = [Spell("one", at - SECOND, at + SECOND), Spell("one", at + 13 * SECOND, at + 99 * SECOND)]
    assert judge([JOB], _runs(at, late=14 * SECOND), [], UNTIL, spells, ["one"]).late == [(7, at)]
    assert judge([JOB], _runs(at, late=11 * SECOND), [], UNTIL, spells, ["one"]).late == []
    broken = [*spells, Spell("one", at + 6 * SECOND, at + 7 * SECOND)]
    assert judge([JOB], _runs(at, late=14 * SECOND), [], UNTIL, broken, ["one"]).late == []


def test_earlier_than_the_clock_was_ever_ahead_is_a_violation():
    runs = _runs(*INSTANTS, late=-40 * SECOND)
    assert len(judge([JOB], runs, [], UNTIL, ahead=10 * SECOND).early) == 10
    assert judge([JOB], runs, [], UNTIL, ahead=40 * SECOND).violations == 0


def test_how_late_it_was_says_nothing_while_the_clock_had_jumped():
    runs = [*_runs(*INSTANTS[:5], late=40 * SECOND), *_runs(*INSTANTS[5:], late=SECOND)]
    jumps = [Spell("postgres", INSTANTS[0], INSTANTS[4])]
    assert judge([JOB], runs, [], UNTIL, jumps=jumps).lateness == [SECOND] * 5


def test_what_is_still_under_way_is_left_out():
    verdict = judge([JOB], _runs(*INSTANTS, UNTIL + 250_000), [], UNTIL)
    assert (verdict.violations, verdict.fired) == (0, 10)


@pytest.mark.timeout(240)
def test_three_schedulers_that_are_killed_and_stopped_fire_every_instant_once(tmp_path: Path):
    command = [sys.executable, "-m", "chaos.schedulers", "--seconds", "25", "--seed", "4", "--report", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = msgspec.json.decode((tmp_path / "report.json").read_bytes())
    assert found["violations"] == 0
    assert found["expected"] == found["fired"] + found["explained"] > 15_000
    assert set(found["hurts"]) >= {"kill", "stop", *(["jump"] if shutil.which("gcc") else [])}
    assert found["takeovers"] > 3 * 256
    assert (tmp_path / "report.md").read_text().startswith("# Three schedulers, seed 4")
