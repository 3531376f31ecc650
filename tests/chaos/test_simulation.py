"""Seeds of the simulation: nothing goes wrong, the same seed goes the same way, and broken builds are found out."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from itertools import count
from pathlib import Path

import pytest

from chaos.mutations import MUTANTS, Mutant, build
from chaos.topology import ROOT
from foliot.kit.postgres import PostgresServer

BLOCKS, SEEDS = 6, 25
ENOUGH = 60
"""Seeds within which a broken build is found out."""
LEFT_OUT = {
    "guardian-off",
    "once-ignored",
    "replay-resets-fence",
    "commit-without-settle",
    "joined-unfenced",
    "cut-off-ignored",
}
"""Those that need what the simulation lacks: processes apart from their worker, handlers with a wire of their own, the
gateway, handlers that outlast a lease, and kills that hit one of few."""
SOONER = {
    "fence-off": 17,
    "unique-off": 10,
    "ack-before-commit": 19,
    "reaper-without-recheck": 9,
    "jitter-unbounded": 6,
    "mode-ignored": 14,
    "late-forgotten": 14,
    "firing-uncompared": 10,
    "queue-of-two": 4,
    "lines-unlocked": 4,
    "cancel-forgotten": 10,
    "cancel-unheard": 13,
    "join-by-batch": 3,
    "failure-ignored": 3,
}
"""Where to begin, so that it takes less long: shortly before the seed that found it the last time."""
PLAYED = [mutant for mutant in MUTANTS if mutant.name not in LEFT_OUT]

Simulate = Callable[..., subprocess.CompletedProcess[str]]
_NAMES = count()


@pytest.fixture
def simulate(server: PostgresServer, tmp_path: Path) -> Simulate:
    def run(*arguments: str, source: Path | None = None) -> subprocess.CompletedProcess[str]:
        name = f"simulation_{os.getpid()}_{next(_NAMES)}"
        command = [sys.executable, "-m", "chaos.simulation", "--server", server.dsn, "--name", name]
        command += ["--processes", "1", "--stories", str(tmp_path), *arguments]
        environment = os.environ if source is None else {**os.environ, "PYTHONPATH": str(source)}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.timeout(300)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_nothing_goes_wrong_whatever_the_seed(simulate: Simulate, tmp_path: Path, block: int):
    done = simulate("--first", str(block * SEEDS + 1), "--seeds", str(SEEDS))
    stories = [path.read_text()[-5_000:] for path in tmp_path.glob("seed-*.txt")]
    assert done.returncode == 0, "\n".join([done.stdout, done.stderr, *stories])
    assert _number(done.stdout, "retries")
    assert _number(done.stdout, "lease take-overs")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("mode", ["safety", "liveness"])
def test_the_same_seed_goes_the_same_way_again(simulate: Simulate, mode: str):
    first, again = (_fingerprint(simulate("--mode", mode, "--first", "7", "--seeds", "5")) for _ in range(2))
    assert first == again
    assert first != _fingerprint(simulate("--mode", mode, "--first", "8", "--seeds", "5"))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("mutant", PLAYED, ids=lambda mutant: mutant.name)
def test_a_broken_build_is_found_out(simulate: Simulate, mutant: Mutant, tmp_path: Path):
    first = str(SOONER.get(mutant.name, 1))
    done = simulate("--stop", "--first", first, "--seeds", str(ENOUGH), source=build(mutant, tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^seed \d+ \(\w+\): S\d+ ", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_no_statement_asks_for_the_time_in_a_way_that_the_simulation_cannot_answer():
    others = re.compile(r"\b(current_(timestamp|time|date)|localtime\w*|transaction_timestamp|timeofday)\b")
    for folder in ("sql", "migrations"):
        for path in files("foliot.store").joinpath(folder).iterdir():
            assert not others.search(path.read_text().lower()), path.name


def _number(said: str, path: str) -> int:
    found = re.search(rf"^{re.escape(path)}: ([\d,]+)$", said, re.MULTILINE)
    assert found is not None, said
    return int(found[1].replace(",", ""))


def _fingerprint(done: subprocess.CompletedProcess[str]) -> str:
    found = re.search(r"^fingerprint: (\w+)$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout + done.stderr
    return found[1]
