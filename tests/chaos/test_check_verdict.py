"""What the checker says, and that it shares nothing with what it checks."""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

import msgspec

import chaos
from chaos.check import Finding
from chaos.check.titles import TITLES
from chaos.oracle import seconds
from chaos.records import Fault, Outcome, Phase
from chaos.speed import generate, judge, make
from chaos.synthetic import clean, planted
from chaos.synthetic.world import rfc3339
from chaos.verdict import Told, check

HERE = Path(chaos.__file__).parent
OURS = [
    "oracle.py",
    "cron.py",
    "forms.py",
    "policy.py",
    "timeline.py",
    "verdict.py",
    "figures.py",
    "slice.py",
    "records.py",
    "check/*.py",
    "synthetic/*.py",
]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "chaos":
            yield from (f"chaos.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_the_checker_imports_nothing_of_the_product_nor_of_the_harness():
    allowed = {f"chaos.{pattern.removesuffix('.py')}" for pattern in OURS if "/" not in pattern}
    for path in (path for pattern in OURS for path in sorted(HERE.glob(pattern))):
        for name in imports(path):
            ours = name in allowed or name.startswith(("chaos.check", "chaos.synthetic"))
            foreign = name.partition(".")[0] not in sys.stdlib_module_names | {"msgspec"}
            assert ours or not foreign, f"{path.name} imports {name}"


def test_a_verdict_names_seed_check_and_events_of_a_violation():
    verdict = check(planted(7, "S6 zombie"))
    told = next(each for each in verdict.findings if each.finding.check == "S6")
    page = verdict.to_markdown()
    assert verdict.violations == 1
    assert "1 violations, seed 7" in page
    assert f"S6 zombie: {told.finding.run}" in page
    assert all(told.finding.run in line for line in told.events if "ledger" in line)
    assert [line.split()[0] for line in told.events] == sorted(line.split()[0] for line in told.events)


def test_the_seed_stands_with_every_violation_also_with_those_of_which_no_events_are_told():
    verdict = check(clean(7))
    findings = [Finding(check="S35", rule="stored", message=f"can be read in table {number}") for number in range(30)]
    told = [Told(finding=each, events=["an event"] if number < 20 else []) for number, each in enumerate(findings)]
    lines = msgspec.structs.replace(verdict, findings=told).stories("abc1234")
    assert sum(line.startswith("## S35 stored") for line in lines) == lines.count("seed 7, commit abc1234") == 30


def test_a_slice_shows_the_fault_beside_what_it_did():
    told = check(planted(7, "S8 begun twice")).findings[0]
    assert any(" fault " in line for line in told.events)
    assert any("ledger start" in line for line in told.events)
    assert any("client createRun ok" in line for line in told.events)


def test_a_slice_is_short_however_long_the_story():
    assert max(len(each.events) for each in check(planted(7, "S3 silence")).findings) <= 41


def test_a_verdict_is_json_that_machines_can_read():
    assert b'"violations": 0' in check(clean(1)).to_json()


def test_measures_that_miss_their_target_are_no_violations():
    evidence = clean(1)
    for effect in evidence.effects:
        if effect.job is None:
            effect.at += 25.0  # everything is late, and nothing is wrong
    evidence.effects.sort(key=lambda effect: effect.at)
    verdict = check(evidence)
    assert verdict.counts["L1"] == 1


def test_availability_leaves_declared_outages_of_the_database_out():
    evidence = clean(1)
    for operation in evidence.operations:
        operation.outcome = Outcome.UNKNOWN
    assert check(evidence).measures["L6"]["answered"] == 0
    everything = Fault(kind="postgresStop", target="postgres", began=0, ended=9e9)
    evidence.faults.append(everything)
    assert check(evidence).measures["L6"]["calls"] == 0


def test_a_call_that_the_other_api_answers_is_answered():
    evidence = clean(1)
    first, last = evidence.operations[0], max(evidence.operations, key=lambda each: each.number)
    evidence.operations = [each for each in evidence.operations if not each.status] + [last]
    before = check(evidence).measures["L6"]

    def with_tries(*statuses: int) -> float:
        tries = [
            msgspec.structs.replace(
                first,
                number=10_000 + n,
                repeats=10_000 if n else 0,
                key="again",
                status=status,
                outcome=Outcome.OK if status == 200 else Outcome.UNKNOWN if status else Outcome.FAIL,
                invoked=last.completed + n,
                completed=last.completed + n + 0.1,
            )
            for n, status in enumerate(statuses)
        ]
        found = check(msgspec.structs.replace(evidence, operations=[*evidence.operations, *tries])).measures["L6"]
        assert found["calls"] == before["calls"] + 1
        return round(found["answered"] * found["calls"] - before["answered"] * before["calls"])

    assert with_tries(200) == 1
    assert with_tries(503, 200) == 1
    assert with_tries(0, 200) == 1
    assert with_tries(503, 503, 200) == 0
    assert with_tries(0) == 0


def test_recovery_is_measured_from_the_kill_to_the_next_start():
    worst = check(clean(2)).measures["L2"]["by fault"]["kill worker"]["restart"]
    assert 15 < worst < 20


def test_only_runs_that_are_plainly_well_need_no_attempts_on_record():
    evidence = clean(1)
    starts = Counter(each.run for each in evidence.effects if each.phase is Phase.START)
    rows = [row for rows in evidence.dump.runs.values() for row in rows]
    well = {row["runId"] for row in rows if (row["status"], row["attempts"]) == ("completed", 1)}
    plain = {run for run in well if starts[run] == 1}
    for rows in evidence.dump.attempts.values():
        rows[:] = [row for row in rows if row["runId"] not in plain]
    assert check(evidence).counts["S12"] >= len(plain) > 100
    evidence.settings["attempts"] = "some"
    assert check(evidence).violations == 0
    evidence.dump.attempts = {}
    found = check(evidence).counts
    assert found["S2"] > 0
    assert found["S12"] > 0


def test_a_check_that_had_nothing_to_look_at_says_so():
    evidence = clean(1)
    assert check(evidence).idle == []
    del evidence.settings["webhooks"]
    page = check(evidence).to_markdown()
    assert "| S13 | every message is delivered, in one wording | not in play |" in page
    assert "| S12 | history tells what happened | 0 |" in page


def test_every_check_and_measure_is_explained():
    page = (HERE.parent / "docs" / "guides" / "chaos.md").read_text()
    told = dict(re.findall(r"^\| ([SL]\d+) \| ([^|]+) \|", page, re.MULTILINE))
    assert {name: title.replace("`", "") for name, title in told.items()} == TITLES


def test_a_page_names_the_targets_that_were_missed_and_what_was_not_judged():
    verdict = check(clean(1))
    assert verdict.missed
    assert f"the instants of 0 of {verdict.jobs} jobs could not be judged" in verdict.to_markdown()


def test_the_history_that_the_checker_is_timed_on_is_clean_and_has_something_of_everything():
    verdict = check(generate(30_000))
    assert verdict.violations == 0, verdict.to_markdown()
    assert verdict.effects > 30_000
    paths = ("retries", "waited for one of its key", "joins", "cancelled while waiting", "revoked keys refused")
    assert not [path for path in (*paths, "audit entries in their chains") if not verdict.rare[path]]


def test_a_made_up_history_is_read_and_judged_as_one_that_a_run_left_and_the_times_are_told(tmp_path):
    make(3_000, tmp_path)
    told = judge(tmp_path)
    took = r"[\d.]+ s \([\d.]+ s of a processor\)"
    assert re.fullmatch(
        rf"3,\d+ effects of 1,\d+ runs: checked in {took}, loaded and checked in {took}, 0 violations, [\d.]+ GB", told
    )


def test_less_is_judged_when_the_system_did_not_come_to_rest():
    evidence = planted(1, "S3 silence")
    at = next(each.finding.at for each in check(evidence).findings if each.finding.check == "S3")
    evidence.dump.taken = at + 40
    assert check(evidence).counts["S3"] == 1
    evidence.dump.quiet = False
    assert check(evidence).counts["S3"] == 0


def test_instants_after_the_cut_off_are_not_judged():
    evidence = planted(1, "S3 silence")
    evidence.dump.taken -= 250
    assert check(evidence).counts["S3"] == 0


def test_a_run_that_was_given_up_later_left_its_place_when_it_ended():
    evidence = clean(7)
    made = [each for each in evidence.operations if each.kind == "createJob" and each.answer and "every" in each.body]
    skipping = {each.answer["jobId"] for each in made if each.body.get("overlap", "skip") == "skip"}
    given_up = [
        row
        for rows in evidence.dump.runs.values()
        for row in rows
        if row["jobId"] in skipping and row["state"] == "completed"
    ]
    for row in given_up:
        row |= {"state": "discarded", "finishedAt": rfc3339(seconds(row["finishedAt"]) + 60)}
    assert given_up
    assert not [each for each in check(evidence).findings if each.finding.check == "S9"]
