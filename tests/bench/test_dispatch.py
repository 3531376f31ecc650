"""The measurements of dispatch, small: what they promise about every run and what they say, never how fast it was."""

import pytest

from foliot.bench.bed import Bed, server
from foliot.bench.dispatch import LONG, SECTIONS
from foliot.bench.held import Part, found_in
from foliot.bench.probe import Probe
from foliot.bench.report import page, rate_rows
from foliot.bench.sample import Sample, _read, rate
from foliot.bench.sections import measure_section
from foliot.bench.soak import growth, slopes
from foliot.bench.targets import DISPATCH, RATES, Target, rows, summarise

ALL = SECTIONS | LONG
PARTS = 4


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
async def test_each_section_in_small_finds_every_run_and_has_a_number_for_each_of_its_targets(part):
    said = []
    with server() as running:
        async with Bed.made(running.dsn) as bed:
            for name, section in list(ALL.items())[part::PARTS]:
                found = await measure_section(section._replace(repeats=1), bed, 0.5, said.append)
                assert {target.name for target in DISPATCH[name]} <= found.keys(), name
                assert found["busy"]["idle"] >= 0
                if name == "inflight":
                    assert (found["missing"], found["lost"]) == (0, 0)
                if name == "fairness":
                    assert found["nextClaim"] == 100
                if name == "fleet":
                    assert 0 < found["connections"] <= 100
                if name == "held":
                    assert min(tenth["claim"] for tenth in found["repeats"][0]["tenths"]) > 0
                if name == "soak":
                    assert found["called"] > 0
            assert await bed.value("SELECT count(*) FROM worker WHERE state = 0") == 0
    assert any(text.startswith("held: ") for text in said) is ("held" in list(ALL)[part::PARTS])


def test_a_target_is_a_bound_from_above_or_from_below():
    most, least, told = Target("a", "A", "ms", 5), Target("b", "B", "/s", 5, at_least=True), Target("c", "C", "s")
    assert [most.is_met(value) for value in (4, 5, 6)] == [True, True, False]
    assert [least.is_met(value) for value in (4, 5, 6)] == [False, True, True]
    assert most.row(6, [6, 1]) == ("A", "6 ms", "5 ms", "MISSED", "6, 1")
    assert least.row(40_000, []) == ("B", "40,000/s", "at least 5/s", "met", "")
    assert least.row(7, [9, 7, 2]) == ("B", "7/s", "at least 5/s", "met, not always", "9, 7, 2")
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


def test_a_leak_shows_in_the_slope_and_what_is_there_for_a_moment_does_not():
    """A megabyte of a thousand in a hundred seconds: 0.1 %, and for ever."""
    sizes = [1_000_000_000 + 1_000_000 * n + (500_000_000 if n in {3, 17} else 0) for n in range(31)]
    looks = [{"at": 100.0 * n, "worker": size, "api": 50_000_000} for n, size in enumerate(sizes)]
    assert growth([look for n, look in enumerate(looks) if n not in {3, 17}])["worker"] < 10
    assert slopes(looks) == {"workerSlope": 36.0, "apiSlope": 0.0}
    assert slopes(looks[:1]) == {"workerSlope": 0.0, "apiSlope": 0.0}
    slope = next(target for target in DISPATCH["soak"] if target.name == "workerSlope")
    assert not slope.is_met(36.1)


def test_what_a_worker_has_settled_is_read_over_all_labels():
    text = (
        'foliot_attempts_total{ending="completed"} 10.0\nfoliot_attempts_total{ending="failed"} 2.0\n'
        'foliot_attempts_created{ending="failed"} 1.7e9\nfoliot_claim_seconds_sum 0.5\n'
    )
    assert _read(text) == 12.0
    assert rate(Sample(0.0, 0.0), Sample(2.0, _read(text))) == 6.0


def test_claims_that_grow_slower_are_seen_whatever_the_pace():
    tenths = [Part(10_000, [9_500, 9_000 - n], [0.002 + n / 1_000]) for n in range(10)]
    found = found_in(Part(10_000, [9_900], [0.006]), tenths)
    assert (found["loss"], found["lossAtEnd"], found["worst"], found["slowSeconds"]) == (0.0, 0.0, 8_991, 0.0)
    assert (found["claimQuiet"], found["claimFirst"], found["claimLast"], found["claimGrowth"]) == (6.0, 2.0, 11.0, 5.5)
    assert missed(found) == ["claimGrowth"]


def test_claims_that_are_slower_than_before_are_seen_even_if_they_grow_no_more():
    tenths = [Part(10_000, [10_000], [0.004] * 18 + [0.03] * 2)] * 10
    found = found_in(Part(10_000, [10_000], [0.0019, 0.002, 0.005]), tenths)
    assert (found["claimGrowth"], found["claimByQuiet"]) == (1.0, 2.0)
    assert (found["claimQuiet95"], found["claimLast"], found["claimLast95"]) == (5.0, 4.0, 30.0)
    assert missed(found) == []
    assert missed(found_in(Part(10_000, [10_000], [0.0019]), tenths)) == ["claimByQuiet"]


def test_seconds_that_stand_still_are_counted_though_the_pace_is_kept_on_average():
    tenths = [Part(10_000, [10_000] * 18 + [7_999, 12_001], [0.002])] * 10
    quiet = Part(10_000, [10_000], [0.002])
    assert found_in(quiet, tenths)["slowSeconds"] == 5.0
    assert missed(found_in(quiet, tenths)) == []
    tenths[3] = Part(10_000, [10_000] * 16 + [7_999, 12_001] * 2, [0.002])
    assert missed(found_in(quiet, tenths)) == ["slowSeconds"]


def missed(found):
    targets = [target for target in DISPATCH["held"] if target.name in found]
    return [target.name for target in targets if not target.is_met(found[target.name])]


async def test_a_probe_claims_as_a_worker_would_and_leaves_everything_as_it_was():
    with server() as running:
        async with Bed.made(running.dsn) as bed:
            probe = await Probe.made(bed.dsn, bed.database)
            assert 0 < await probe.time() < 10
            assert 0 < await probe.time() < 10
            await probe.close()
            assert await bed.value("SELECT count(*) FROM run WHERE id > 0") == 0
            assert await bed.value("SELECT count(*) FROM claim WHERE worker > 0") == 0


def told(**results):
    machine = {"commit": "abc", "measuredAt": "now", "processors": 2, "processor": "P", "memoryGiB": 4}
    machine |= {"system": "S", "python": "3.11"}
    head = {"machine": machine, "postgres": "18", "loadBefore": 0.1, "minutes": 1.0, "seconds": 8.0}
    return page({**head, "results": results})


def test_the_report_shows_each_section_with_its_verdicts_and_its_course():
    tenth = {"rate": 9_000, "worst": 8_000, "claim": 4.2, "claim95": 9.5}
    repeat = {target.name: 1.0 for target in DISPATCH["held"]} | {"loss": 30.0, "tenths": [tenth] * 10}
    repeat["busy"] = {"worker": 0.95, "backends": 0.2, "idle": 0.8}
    section = {"title": "Held", "about": "What was done.", "seconds": 600.0, "repeats": [repeat]}
    section |= summarise([repeat], DISPATCH["held"])
    assert ("lost meanwhile", "30 %", "20 %", "MISSED", "30") in list(rows(section, DISPATCH["held"]))
    text = told(dispatch={"held": section})
    assert "## Held\n\nWhat was done.\n" in text
    assert "| lost meanwhile | 30 % | 20 % | MISSED | 30 |" in text
    assert "What bounds it: the worker's one processor" in text
    assert "| 10 | 9000 | 8000 | 4.2 | 9.5 |" in text
    assert "|  | measured once | held to |" in text


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
