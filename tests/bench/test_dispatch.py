"""The measurements of dispatch, small: what they promise about every run and what they say, never how fast it was."""

import pytest

from foliot.bench.bed import Bed, server
from foliot.bench.dispatch import LONG, SECTIONS
from foliot.bench.report import page, rate_rows
from foliot.bench.sample import Sample, _read, claim_time, rate
from foliot.bench.sections import measure_section
from foliot.bench.soak import growth
from foliot.bench.targets import DISPATCH, RATES, Target, rows, summarise

ALL = SECTIONS | LONG


@pytest.mark.timeout(300)
async def test_each_section_in_small_finds_every_run_and_has_a_number_for_each_of_its_targets():
    said = []
    with server() as running:
        async with Bed.made(running.dsn) as bed:
            for name, section in ALL.items():
                found = await measure_section(section._replace(repeats=1), bed, 0.5, said.append)
                assert {target.name for target in DISPATCH[name]} <= found.keys(), name
                assert found["busy"]["idle"] >= 0
                if name == "inflight":
                    assert (found["missing"], found["lost"]) == (0, 0)
                if name == "fairness":
                    assert found["nextClaim"] == 100
            assert await bed.value("SELECT count(*) FROM worker WHERE state = 0") == 0
    assert any(text.startswith("held: ") for text in said)


def test_a_target_is_a_bound_from_above_or_from_below():
    most, least, told = Target("a", "A", "ms", 5), Target("b", "B", "/s", 5, at_least=True), Target("c", "C", "s")
    assert [most.is_met(value) for value in (4, 5, 6)] == [True, True, False]
    assert [least.is_met(value) for value in (4, 5, 6)] == [False, True, True]
    assert most.row(6, [6, 1]) == ("A", "6 ms", "5 ms", "MISSED", "6, 1")
    assert least.row(40_000, []) == ("B", "40,000/s", "at least 5/s", "met", "")
    assert told.row(1.5, [1.5]) == ("C", "1.5 s", "", "", "1.5")


def test_every_section_has_targets_and_every_target_a_section():
    assert ALL.keys() == DISPATCH.keys()
    for targets in [*DISPATCH.values(), RATES]:
        assert len({target.name for target in targets}) == len(targets)


def test_growth_is_that_of_the_last_third_over_the_one_before():
    looks = [{"at": float(n), "tables": size} for n, size in enumerate([900, 100, 120, 110, 100, 132])]
    assert growth(looks) == {"tables": 10.0}
    assert growth(looks[:1]) == {"tables": 0.0}
    assert growth([{"at": 0.0, "tables": 100}, {"at": 1.0, "tables": 50}]) == {"tables": 0.0}


def test_counters_of_a_worker_are_read_over_all_labels():
    text = (
        'foliot_attempts_total{ending="completed"} 10.0\nfoliot_attempts_total{ending="failed"} 2.0\n'
        'foliot_claim_seconds_sum 0.5\nfoliot_claim_seconds_count 4.0\nfoliot_claim_seconds_bucket{le="1"} 4.0\n'
    )
    assert _read(text) == [12.0, 0.5, 4.0]
    first, last = Sample(0.0, 0.0, 0.0, 0.0), Sample(2.0, *_read(text))
    assert rate(first, last) == 6.0
    assert claim_time(first, last) == 125.0
    assert claim_time(last, last) == 0.0


def told(**results):
    machine = {"commit": "abc", "measuredAt": "now", "processors": 2, "processor": "P", "memoryGiB": 4}
    machine |= {"system": "S", "python": "3.11"}
    head = {"machine": machine, "postgres": "18", "loadBefore": 0.1, "minutes": 1.0, "seconds": 8.0}
    return page({**head, "results": results})


def test_the_report_shows_each_section_with_its_verdicts_and_its_course():
    tenth = {"rate": 9_000, "claim": 4.2}
    repeat = {target.name: 1.0 for target in DISPATCH["held"]} | {"loss": 30.0, "tenths": [tenth] * 10}
    repeat["busy"] = {"worker": 0.95, "backends": 0.2, "idle": 0.8}
    section = {"title": "Held", "about": "What was done.", "seconds": 600.0, "repeats": [repeat]}
    section |= summarise([repeat], DISPATCH["held"])
    assert ("lost meanwhile", "30 %", "20 %", "MISSED", "30") in list(rows(section, DISPATCH["held"]))
    text = told(dispatch={"held": section})
    assert "## Held\n\nWhat was done.\n" in text
    assert "| lost meanwhile | 30 % | 20 % | MISSED | 30 |" in text
    assert "What bounds it: the worker's one processor" in text
    assert "| 10 | 9000 | 4.2 |" in text


def test_rates_and_latencies_are_held_to_what_was_promised():
    ratio = {"median": 0.66, "least": 0.5, "most": 0.8}
    results = {"sustained": 47_000, "ratio": {"sustained": ratio}, "walSustained": 870, "latencyMs": {"p50": 1.2}}
    results["repeats"] = {"sustained": {"foliot": [46_000, 47_000, 48_000]}, "wal": [870], "latency": [{"p50": 1.2}]}
    verdicts = {title: (value, verdict) for title, value, _, verdict, _ in rate_rows(results)}
    assert verdicts == {
        "sustained end to end (aim 60,000)": ("47,000/s", "met"),
        "sustained, share of the raw floor": ("0.66", "MISSED"),
        "WAL per run, sustained (aim 1,024)": ("870 B", "met"),
        "start latency at 200/s p50": ("1.2 ms", "met"),
    }
    assert list(rate_rows({})) == []
