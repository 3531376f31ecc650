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
from chaos.result import ENOUGH, PLENTY, complaints, result
from chaos.run import DONE as DONE_FILE
from chaos.run import Done
from chaos.synthetic import clean, planted
from chaos.verdict import Verdict, check

DONE = Done(acknowledged=PLENTY, lacking={}, unused=[])


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
    assert complaints(verdict, DONE) == []


def test_it_complains_of_a_rare_path_that_was_not_walked_and_of_a_fault_that_never_came(verdict: Verdict):
    idle = with_(verdict, rare=verdict.rare | {"snoozes": 0})
    done = msgspec.structs.replace(DONE, unused=["diskFull"])
    assert complaints(idle, done) == ["never walked: snoozes", "never happened: diskFull"]


def test_it_complains_of_a_recovery_that_was_slow_or_not_measured(verdict: Verdict):
    worker, scheduler, database = verdict.measures["L2"]["promised"].items()
    slow = {worker[0]: worker[1] | {"worst": 20.5}, scheduler[0]: {"cases": 0, "bound": 10.0}, database[0]: database[1]}
    found = with_(verdict, measures=verdict.measures | {"L2": {"promised": slow}})
    assert complaints(found, DONE) == [
        f"never measured: {scheduler[0]}",
        f"too slow: {worker[0]}: 20.50 s, and 20 s is promised",
    ]


def test_it_complains_when_more_than_one_job_in_a_hundred_could_not_be_judged(verdict: Verdict):
    assert complaints(with_(verdict, jobs=200, unjudged=2), DONE) == []
    assert complaints(with_(verdict, jobs=200, unjudged=3), DONE) == ["not judged: 3 of 200 jobs"]


def test_it_complains_of_a_proof_with_too_few_acknowledged_runs(verdict: Verdict):
    done = msgspec.structs.replace(DONE, acknowledged=199_999)
    assert complaints(verdict, done) == ["too few: 199,999 acknowledged of 200,000"]


def leave(folder: Path, evidence: Evidence, seconds: float = 60.0) -> None:
    """As a run does."""
    evidence.settings |= {"seconds": seconds, "commit": "abc1234", "command": "make chaos SECONDS=60 SEED=5"}
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
    leave(folder, evidence, seconds)
    return judge(folder, capsys)


def judge(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    given = argparse.Namespace(report=folder.parent / "report", evidence=None)
    code = program.conclude(given, folder, DONE)
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
    assert "\nThe run passed.\n" in page
    assert "\nIt is no proof:\n- that takes 600 s" in page
    assert "\nTargets of quality that were missed:\n- L" in page
    assert "\nTo repeat it: `make chaos SECONDS=60 SEED=5`\n" in page
    assert "| commit | abc1234 |" in page
    assert re.search(rf"^{len(evidence.effects):,} effects were read and judged in \d+\.\d s\.$", page, re.MULTILINE)


def test_a_violation_fails_a_run_of_any_length_and_is_told_with_seed_commit_and_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
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
    code, said = judge(tmp_path / "run", capsys)
    assert code == 1
    assert re.findall("fell over by itself: .*", said) == ["fell over by itself: scheduler-1, see its log"]
    assert (logs / "scheduler-1.log").exists()


def test_what_is_lacking_fails_a_proof_and_not_a_shorter_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def lacking() -> Evidence:
        evidence = clean(5)
        evidence.operations = [each for each in evidence.operations if each.kind != "weighTenant"]
        return evidence

    assert conclude(tmp_path / "short", lacking(), 599.0, capsys)[0] == 0
    code, said = conclude(tmp_path / "long", lacking(), ENOUGH, capsys)
    assert code == 1
    assert "never walked: tenants weighed anew" in said
    assert "no proof" not in said
    assert (
        "\nThe run **failed**:\n- never walked: tenants weighed anew\n" in (tmp_path / "report/report.md").read_text()
    )
    assert said.splitlines()[-1].startswith("chaos: 200000 acknowledged, 0 violations, seed 5, ")


def test_a_write_that_found_no_room_is_counted_in_the_database_s_log(tmp_path: Path):
    leave(tmp_path / "run", clean(5))
    (tmp_path / "run" / "logs").mkdir()
    said = ["LOG:  checkpoint starting", *['ERROR:  could not extend file "base/5/1": No space left on device'] * 2]
    (tmp_path / "run" / "logs" / "postgres.log").write_text("\n".join(said))
    assert load(tmp_path / "run").no_room == 2


def test_what_a_run_has_left_can_be_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "run"
    leave(folder, planted(7, "S6 zombie"))
    given = argparse.Namespace(report=tmp_path / "report", evidence=None, judge=folder)
    assert program.judge(given) == 2
    assert "no run has come to its end there" in capsys.readouterr().out
    (folder / DONE_FILE).write_bytes(msgspec.json.encode(DONE))
    assert program.judge(given) == 1
    assert "1 violations, seed 7" in capsys.readouterr().out.splitlines()[-1]
    assert (folder / "ledger.jsonl").exists()


def test_records_of_another_run_are_not_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    leave(tmp_path / "run", clean(5))
    monkeypatch.setattr("sys.argv", ["chaos", "--evidence", str(tmp_path / "run")])
    with pytest.raises(SystemExit, match="has the records of another run"):
        program.main()


def test_a_run_is_a_proof_only_if_this_machine_could_do_everything_and_was_asked_to(verdict: Verdict):
    asked = {"seconds": ENOUGH, "everything": True}
    unable = msgspec.structs.replace(DONE, lacking={"diskFull": "this needs root"})
    assert result(verdict, DONE, [], asked).is_proof
    for done, settings, why in (
        (unable, asked, "not possible here: diskFull"),
        (DONE, asked | {"everything": False}, "only some faults were asked for"),
        (DONE, asked | {"seconds": 599.0}, "that takes 600 s, and then nothing may be lacking"),
    ):
        found = result(verdict, done, [], settings)
        assert found.shortcomings == [why]
        assert not found.failed


def test_a_target_that_nothing_was_measured_for_is_not_told_as_met(verdict: Verdict):
    def told(slots: int) -> list[str]:
        shares = verdict.measures["L4"] | {"saturated slots": slots}
        return with_(verdict, measures=verdict.measures | {"L4": shares}).unmeasured

    assert set(told(0)) - set(told(1)) == {"L4 fair shares: never did two tenants have a backlog for ten seconds"}
