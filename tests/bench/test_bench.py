"""`foliot bench` in its shortest form: it runs the real processes, checks itself, and says what it promises to say."""

import asyncio
import json
import signal
import subprocess
import sys

import pytest

from foliot.bench.bed import Bed, server
from foliot.bench.latency import measure_latency
from foliot.bench.limits import OUT_OF_TURN
from foliot.bench.measure import compare
from foliot.bench.produce import limited_spec
from foliot.bench.pulse import Beat, Look, Pulse
from foliot.bench.report import is_noisy, page, publish
from foliot.bench.tune import SETTINGS, finalists
from foliot.bench.watch import PROC, children
from foliot.store.submission import NewRun
from world import World


@pytest.mark.timeout(300)
def test_the_bench_measures_beside_the_floor_and_finds_every_run_in_history():
    command = [sys.executable, "-m", "foliot", "bench", "--json", "--seconds", "0.5", "--only", "drain"]
    said = subprocess.run(command, capture_output=True, check=False, text=True)
    assert said.returncode == 0, said.stderr
    assert "written to" not in said.stderr
    results = json.loads(said.stdout)
    assert results["drain"] > 0
    assert results["floor"]["drain"] > 0
    assert set(results["floor"]["settings"]["drain"]) == {"batch", "connections"}
    assert len(results["repeats"]["drain"]["floor"]) == 3
    assert 300 < results["walBytesPerRun"] < 5_000
    assert results["historyRows"] == results["runsSubmitted"] > 0


@pytest.mark.skipif(not PROC.exists(), reason="who started whom is read from /proc")
def test_a_bench_that_is_told_to_end_leaves_nothing_behind():
    command = [sys.executable, "-m", "foliot", "bench", "--seconds", "0.5", "--only", "drain"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as bench:
        assert bench.stderr is not None
        bench.stderr.readline()  # it measures now
        started = children(bench.pid)
        assert started
        bench.send_signal(signal.SIGTERM)
        bench.stderr.read()
    assert bench.returncode == 128 + signal.SIGTERM
    assert not [pid for pid in started if (PROC / str(pid)).exists()]


async def test_start_latency_is_measured_from_the_call_to_the_handler_beside_two_bare_commits():
    with server() as running:
        async with Bed.made(running.dsn) as bed:
            found = await measure_latency(bed, 0.5, lambda _: None)
    for times in (found["latency"], found["twoCommits"]):
        assert 0 < times["p50"] <= times["p95"] <= times["p99"]
    slowest = found["slowest"]
    assert len(slowest) == 10
    assert [each["at"] for each in slowest] == sorted(each["at"] for each in slowest)
    assert max(each["ms"] for each in slowest) >= found["latency"]["p99"]
    assert all(each["commit"] > 0 or each["ms"] < 40 for each in slowest)


def test_beside_a_slow_start_stands_what_happened_at_the_same_time():
    pulse = Pulse(None, None)
    pulse.beats += [Beat(10.0, 0.001, 0.0), Beat(10.2, 0.03, 0.0), Beat(10.5, 0.001, 0.09), Beat(11.0, 0.5, 0.0)]
    pulse.looks += [Look(9.5, 10.0, 0.5, ("autovacuum: VACUUM foliot.run",)), Look(10.05, 10.55, 0.1, ("checkpoint",))]
    assert pulse.around(10.21, 10.24) == {"commit": 30.0, "wake": 0.0, "steal": 10, "server": ["checkpoint"]}
    assert pulse.around(10.1, 10.46) == {"commit": 30.0, "wake": 90.0, "steal": 10, "server": ["checkpoint"]}
    assert pulse.around(20.0, 20.1) == {"commit": 0.0, "wake": 0.0, "steal": 0, "server": []}


def test_the_report_tells_the_slowest_starts():
    near = {"commit": 25.0, "wake": 0.3, "steal": 4, "server": ["checkpoint"]}
    results = {"floor": {"settings": {}}, "latencyMs": {"p50": 1.4}, "repeats": {"latency": [{"p50": 1.4}]}}
    results |= {
        "latencySeconds": 30.0,
        "slowest": [[{"at": 3.5, "ms": 38.9, **near}], [{"at": 7.0, "ms": 90.0, **near}]],
    }
    machine = {"commit": "abc", "measuredAt": "now", "processors": 2, "processor": "P", "memoryGiB": 4}
    machine |= {"system": "S", "python": "3.11"}
    head = {"machine": machine, "postgres": "18", "loadBefore": 0.1, "minutes": 1.0, "seconds": 8.0}
    text = page({**head, "results": results})
    assert "measured for 30 s a repeat" in text
    assert "The floor was tuned" not in text  # there was none
    assert "1 of these 2 times" in text
    assert "| 1 | 3.5 | 38.9 | 25.0 | 0.3 | 4 | checkpoint |" in text


async def test_no_analyze_ever_sees_the_tables_without_their_ballast():
    with server() as running:
        async with Bed.made(running.dsn) as bed:
            seen = []

            async def analyze(wipes):
                while not wipes.done():
                    await bed.value("ANALYZE run")
                    seen.append(await bed.value("SELECT reltuples FROM pg_class WHERE relname = 'run'"))

            async def wipe():
                for _ in range(5):
                    await bed.wipe()

            wipes = asyncio.ensure_future(wipe())
            await analyze(wipes)
            await wipes
    assert len(seen) > 5
    assert 0 not in seen


async def test_tuning_tries_every_setting_and_the_better_ones_again_for_longer():
    tried = []

    async def measure(setting, seconds):
        tried.append((setting, seconds))
        return setting[0] * setting[1]

    assert await finalists(measure, 8.0) == [(5_000, 4), (5_000, 2)]
    assert [setting for setting, seconds in tried if seconds == 1.0] == list(SETTINGS)
    assert {setting for setting, seconds in tried if seconds == 3.0} == {(5_000, 4), (5_000, 2), (2_000, 4), (5_000, 1)}


def test_the_ratio_is_that_of_the_medians_to_the_best_floor_with_its_spread():
    found = compare([40.0, 50.0, 30.0], {(200, 1): [100.0, 1.0, 70.0], (1_000, 2): [80.0, 100.0, 50.0]})
    assert found["settings"] == {"batch": 1_000, "connections": 2}
    assert (found["foliot"], found["floor"]) == (40, 80)
    assert found["ratio"] == {"median": 0.5, "least": 0.3, "most": 1.0}
    assert is_noisy(found["repeats"])
    assert not is_noisy({"foliot": [40, 41, 42], "floor": [80, 90, 99]})


def test_a_report_warns_of_a_ratio_that_says_little(tmp_path):
    found = compare([40.0, 50.0, 30.0], {(1_000, 2): [80.0, 100.0, 50.0]})
    floor = {"drain": found["floor"], "settings": {"drain": found["settings"]}, "longestPause": {"drain": 1.5}}
    results = {"drain": found["foliot"], "floor": floor, "ratio": {"drain": found["ratio"]}}
    results |= {"repeats": {"drain": found["repeats"]}, "runsSubmitted": 0, "latencyMs": {"p50": 3.5}}
    machine = {"commit": "abc", "measuredAt": "now", "processors": 2, "processor": "P", "memoryGiB": 4}
    machine |= {"system": "S", "python": "3.11"}
    head = {"machine": machine, "postgres": "18", "loadBefore": 0.1, "minutes": 1.0, "seconds": 8.0}
    publish(tmp_path, {**head, "results": results})
    text = (tmp_path / "bench.md").read_text()
    assert "0.50 (0.30 to 1.00)" in text
    assert "**Noisy: drain." in text
    assert "1.50 s" in text
    assert "The floor was tuned" in text
    assert json.loads((tmp_path / "bench.json").read_text())["results"] == results


async def test_of_a_key_a_run_that_did_not_wait_for_its_turn_is_seen_in_history(world: World):
    spec = await world.specs.intern(world.tenant, limited_spec(1, 2))
    keys = [0, 1, 0, 1, 0]
    accepted = await world.submitter.submit([NewRun(spec, b"{}", limit_key=key) for key in keys])
    runs, hand = list(accepted.ids), await world.worker()
    while taken := await hand.claim():
        assert await hand.settle(taken) == len(taken)

    async def out_of_turn() -> int:
        return await world.value(OUT_OF_TURN, runs, keys)

    await world.sql("UPDATE foliot.history SET started_at = finished_at WHERE run = ANY ($1)", runs)
    assert await out_of_turn() == 0
    await world.sql("UPDATE foliot.history SET started_at = started_at - interval '1 hour' WHERE run = $1", runs[-1])
    assert await out_of_turn() == 1
