"""`foliot bench` in its shortest form: it runs the real processes, checks itself, and says what it promises to say."""

import json
import subprocess
import sys

import pytest


@pytest.mark.timeout(300)
def test_the_bench_measures_beside_the_floor_and_finds_every_run_in_history():
    command = [sys.executable, "-m", "foliot", "bench", "--json", "--seconds", "0.5", "--only", "drain"]
    said = subprocess.run([*command, "--only", "latency"], capture_output=True, check=False, text=True)
    assert said.returncode == 0, said.stderr
    results = json.loads(said.stdout)
    assert results["drain"] > 0
    assert results["floor"]["drain"] > 0
    assert set(results["floor"]["settings"]["drain"]) == {"batch", "connections"}
    assert 300 < results["walBytesPerRun"] < 5_000
    assert 0 < results["latencyMs"]["p50"] <= results["latencyMs"]["p95"] <= results["latencyMs"]["p99"]
    assert results["historyRows"] == results["runsSubmitted"] > 0
