"""What `python -m chaos` says at its end, and when it fails."""

import argparse
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos import __main__ as program
from chaos.crashes import UNEXPECTED
from chaos.records import Evidence, load
from chaos.run import Done, Options
from chaos.synthetic import clean, planted
from chaos.verdict import Verdict, check

DONE = Done(acknowledged=program.PLENTY, lacking={}, unused=[])


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    """With nothing to complain about: a clean history has every rare path, and recoveries that are made up."""
    found = check(clean(5))
    for each in found.measures["L2"]["promised"].values():
        each |= {"cases": 1, "worst": each["bound"]}
    return found


def with_(verdict: Verdict, **changes: Any) -> Verdict:
    return msgspec.structs.replace(verdict, **changes)


def test_a_proof_to_which_nothing_is_lacking_gets_no_complaint(verdict: Verdict):
    assert program.complaints(verdict, DONE) == []


def test_it_complains_of_a_rare_path_that_was_not_walked_and_of_a_fault_that_never_came(verdict: Verdict):
    idle = with_(verdict, rare=verdict.rare | {"snoozes": 0})
    done = msgspec.structs.replace(DONE, unused=["diskFull"])
    assert program.complaints(idle, done) == ["never walked: snoozes", "never happened: diskFull"]


def test_it_complains_of_a_recovery_that_was_slow_or_not_measured(verdict: Verdict):
    worker, scheduler, database = verdict.measures["L2"]["promised"].items()
    slow = {worker[0]: worker[1] | {"worst": 20.5}, scheduler[0]: {"cases": 0, "bound": 10.0}, database[0]: database[1]}
    found = with_(verdict, measures=verdict.measures | {"L2": {"promised": slow}})
    assert program.complaints(found, DONE) == [
        f"never measured: {scheduler[0]}",
        f"too slow: {worker[0]}: 20.50 s, and 20 s is promised",
    ]


def test_it_complains_when_more_than_one_job_in_a_hundred_could_not_be_judged(verdict: Verdict):
    assert program.complaints(with_(verdict, jobs=200, unjudged=2), DONE) == []
    assert program.complaints(with_(verdict, jobs=200, unjudged=3), DONE) == ["not judged: 3 of 200 jobs"]


def test_it_complains_of_a_proof_with_too_few_acknowledged_runs(verdict: Verdict):
    done = msgspec.structs.replace(DONE, acknowledged=199_999)
    assert program.complaints(verdict, done) == ["too few: 199,999 acknowledged of 200,000"]


def leave(folder: Path, evidence: Evidence) -> None:
    """As a run does."""
    evidence.settings["seconds"] = 60.0
    folder.mkdir()
    (folder / "run.json").write_bytes(msgspec.json.encode({"seed": evidence.seed, "settings": evidence.settings}))
    for name, records in (
        ("operations", evidence.operations),
        ("ledger", evidence.effects),
        ("faults", evidence.faults),
    ):
        (folder / f"{name}.jsonl").write_bytes(_lines(records))
    (folder / "dump.json").write_bytes(msgspec.json.encode(evidence.dump))


def _lines(records: list[Any]) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in records)


def conclude(folder: Path, evidence: Evidence, seconds: float, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    leave(folder, evidence)
    return judge(folder, evidence.seed, seconds, capsys)


def judge(folder: Path, seed: int, seconds: float, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    given = argparse.Namespace(report=folder.parent / "report", evidence=None, rate=None, guard=False, only=None)
    code = program.conclude(given, Options(seed=seed, seconds=seconds, folder=folder), DONE)
    return code, capsys.readouterr().out


def test_a_clean_run_ends_with_one_line_and_leaves_no_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    evidence = clean(5)
    code, said = conclude(tmp_path / "run", evidence, 60.0, capsys)
    assert code == 0
    faults = len(evidence.faults)
    assert said.splitlines()[-1] == f"chaos: 200000 acknowledged, 0 violations, seed 5, {faults} faults"
    assert said.splitlines()[-2].startswith("this is no proof: ")
    assert not (tmp_path / "run").exists()
    page = (tmp_path / "report" / "report.md").read_text()
    assert "Targets of quality that were missed" in page
    assert re.search(rf"^{len(evidence.effects):,} effects were read and judged in \d+\.\d s\.$", page, re.MULTILINE)


def test_a_violation_fails_a_run_of_any_length_and_is_told_with_seed_commit_and_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(program, "commit", lambda: "abc1234")
    code, said = conclude(tmp_path / "run", planted(7, "S6 zombie"), 60.0, capsys)
    assert code == 1
    assert said.splitlines()[-1].startswith("chaos: 200000 acknowledged, 1 violations, seed 7, ")
    told = said[said.index("## S6 zombie") :]
    assert "seed 7, commit abc1234" in told
    assert "ledger start" in told
    assert f"the evidence is in {tmp_path / 'run'}" in said
    assert (tmp_path / "run" / "ledger.jsonl").exists()


def test_a_process_that_fell_over_by_itself_fails_a_run_of_any_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    logs = tmp_path / "run" / "logs"
    leave(tmp_path / "run", clean(5))
    logs.mkdir()
    (logs / "scheduler-1.log").write_text(f"12:00:00 scheduler  error: {UNEXPECTED}\n")
    (logs / "scheduler-0.log").write_text("12:00:00 scheduler  watching the clock\n")
    code, said = judge(tmp_path / "run", 5, 60.0, capsys)
    assert code == 1
    assert re.findall("fell over by itself: .*", said) == ["fell over by itself: scheduler-1, see its log"]
    assert (logs / "scheduler-1.log").exists()


def test_what_is_lacking_fails_a_proof_and_not_a_shorter_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def lacking() -> Evidence:
        evidence = clean(5)
        evidence.operations = [each for each in evidence.operations if each.kind != "weighTenant"]
        return evidence

    assert conclude(tmp_path / "short", lacking(), 599.0, capsys)[0] == 0
    code, said = conclude(tmp_path / "long", lacking(), program.ENOUGH, capsys)
    assert code == 1
    assert "never walked: tenants weighed anew" in said
    assert "no proof" not in said
    assert said.splitlines()[-1].startswith("chaos: 200000 acknowledged, 0 violations, seed 5, ")


def test_a_write_that_found_no_room_is_counted_in_the_database_s_log(tmp_path: Path):
    leave(tmp_path / "run", clean(5))
    (tmp_path / "run" / "logs").mkdir()
    said = ["LOG:  checkpoint starting", *['ERROR:  could not extend file "base/5/1": No space left on device'] * 2]
    (tmp_path / "run" / "logs" / "postgres.log").write_text("\n".join(said))
    assert load(tmp_path / "run").no_room == 2
