"""Seeds of the simulation: nothing goes wrong, the same seed goes the same way, and broken builds are found out."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.kept import Kept
from chaos.mutations import MUTANTS, Mutant, build
from chaos.mutations_of_stopping import ONLY_SIMULATED as OF_STOPPING
from chaos.mutations_of_time import ONLY_SIMULATED as OF_TIME
from chaos.simulation.__main__ import wanted
from chaos.simulation.campaign import ELSEWHERE, Report
from chaos.simulation.mode import Mode, mode_of
from chaos.simulation.run import LOST
from chaos.simulation.world import CHORES_EVERY, FIRST_OF_TIMES, TIMES_EVERY
from chaos.topology import ROOT
from foliot.kit.postgres import PostgresServer

BLOCKS, SEEDS = 10, 20
ENOUGH = 60
"""Seeds within which a broken build is found out."""
LEFT_OUT = {
    "guardian-off",
    "once-ignored",
    "replay-resets-fence",
    "commit-without-settle",
    "joined-unfenced",
    "cut-off-ignored",
    "kin-left",
    "graph-unlocked",
    "gate-ignored",
    "suspects-among-others",
    "key-believed",
    "expiry-forgotten",
    "role-ignored",
    "role-given",
    "tenant-unscoped",
    "version-ignored",
    "version-asked-once",
    "change-untold",
    "told-apart",
    "chain-unlinked",
    "quota-unlocked",
    "refused-too-late",
    "pace-ignored",
    "written-plain",
    "guard-off",
    "secrets-kept",
    "secrets-logged",
    "death-undone",
    "late-claim-kept",
    "crashes-uncounted",
    "success-handed-back",
    "outage-massacre",
}
"""Those that need what the simulation lacks: parents that end at the very same time, pauses that last, processes apart
from their worker, handlers with a wire of their own, the gateway, handlers and outages that outlast a lease, kills that
hit one of few, runs that may begin once only, statements that are held up for longer than a lease, clients with keys,
versions, quotas and secrets of their own, and workers that nothing has happened to for a while."""
SOONER = {
    "fence-off": 19,
    "unique-off": 12,
    "ack-before-commit": 19,
    "reaper-without-recheck": 13,
    "notify-only": 2,
    "node-clock": 8,
    "runs-uncounted": 2,
    "jitter-unbounded": 8,
    "mode-ignored": 16,
    "ledger-lies": 5,
    "late-forgotten": 16,
    "firing-uncompared": 12,
    "calendar-ignored": 7,
    "tried-replaced": 20,
    "backfill-doubles": 95,
    "pause-ignored": 24,
    "hand-back-keeps-fence": 15,
    "reply-forgotten": 21,
    "leaf-by-clock": 12,
    "lines-unlocked": 70,
    "queue-of-two": 4,
    "cancel-forgotten": 22,
    "cancel-unheard": 13,
    "cancel-takes-from-workers": 4,
    "join-by-batch": 12,
    "failure-ignored": 3,
    "newest-waits": 4,
    "gap-ignored": 20,
    "recall-ignored": 20,
}
"""Where to begin, so that it takes less long: with the seed that found it the last time."""
WITH_LINES = {
    "limit-ignored",
    "lines-unlocked",
    "nobody-called",
    "order-ignored",
    "place-given-up",
    "queue-of-two",
    "cancel-forgotten",
    "cancel-unheard",
    "cancel-takes-from-workers",
    "newest-waits",
}
WITH_CHORES = {
    "discard-forgets",
    "pause-ignored",
    "snooze-spends",
    "join-by-batch",
    "failure-ignored",
    "fingerprint-ignored",
}
WITH_TIMES = {
    "window-ignored",
    "edit-reaches-back",
    "tried-replaced",
    "backfill-doubles",
    "backfill-unpaced",
    "backfill-disordered",
    "gap-ignored",
    "schedule-uncompared",
    "recall-ignored",
}
"""Those that only seeds with lines, or with chores, can find out, and those that are found out soonest where somebody
minds the time: the others need not be tried."""
PLAYED = [mutant for mutant in (*MUTANTS, *OF_TIME, *OF_STOPPING) if mutant.name not in LEFT_OUT]

Simulate = Callable[..., subprocess.CompletedProcess[str]]
Begin = Callable[..., "subprocess.Popen[str]"]
_NAMES = count()
CORE = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
"""Tests that run at the same time do not get into each other's way."""


@pytest.fixture
def begin(server: PostgresServer, tmp_path: Path) -> Iterator[Begin]:
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str, source: Path | None = None) -> "subprocess.Popen[str]":
        name = f"simulation_{os.getpid()}_{next(_NAMES)}"
        command = [sys.executable, "-m", "chaos.simulation", "--server", server.dsn, "--name", name]
        command += ["--processes", "1", "--core", CORE, "--stories", str(tmp_path), *arguments]
        environment = os.environ if source is None else {**os.environ, "PYTHONPATH": str(source)}
        pipe = subprocess.PIPE
        begun.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True))
        return begun[-1]

    yield start
    for each in begun:
        each.kill()
        each.communicate()


@pytest.fixture
def simulate(begin: Begin) -> Simulate:
    def run(*arguments: str, source: Path | None = None) -> subprocess.CompletedProcess[str]:
        process = begin(*arguments, source=source)
        said, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, said, errors)

    return run


@pytest.mark.timeout(300)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_nothing_goes_wrong_whatever_the_seed(simulate: Simulate, tmp_path: Path, block: int):
    done = simulate("--first", str(block * SEEDS + 1), "--seeds", str(SEEDS))
    stories = [path.read_text()[-5_000:] for path in tmp_path.glob("seed-*.txt")]
    assert done.returncode == 0, "\n".join([done.stdout, done.stderr, *stories])
    assert _number(done.stdout, "retries")
    assert _number(done.stdout, "lease take-overs")
    assert _number(done.stdout, LOST["before"])
    assert _number(done.stdout, LOST["after"])
    assert not [path for path in ELSEWHERE if _number(done.stdout, path)]


@pytest.mark.timeout(120)
def test_the_same_seed_goes_the_same_way_again(simulate: Simulate, tmp_path: Path):
    first, again = tmp_path / "first", tmp_path / "again"
    for folder in (first, again):
        simulate("--kept", str(folder), "--first", "7", "--seeds", "4")
    assert _kept(first) == _kept(again)
    assert len({each["fingerprint"] for each in _kept(first).values()}) == 4


@pytest.mark.timeout(120)
def test_a_campaign_goes_on_where_it_was_ended(simulate: Simulate, begin: Begin, tmp_path: Path):
    asked = ("--kept", str(tmp_path), "--first", "11", "--seeds", "3")
    ended = begin(*asked)
    while not _kept(tmp_path) and ended.poll() is None:
        time.sleep(0.02)
    ended.send_signal(signal.SIGTERM)
    said, _ = ended.communicate()
    before = _kept(tmp_path)
    assert ended.returncode == 128 + signal.SIGTERM
    assert said.strip().endswith(f", {3 - len(before)} to go")
    again = simulate(*asked)
    assert again.returncode == 0, again.stdout + again.stderr
    assert f"{len(before)} of 3 seeds were done before" in again.stdout
    assert again.stdout.strip().splitlines()[-1].startswith("simulation: 3 seeds, ")
    assert _kept(tmp_path).items() >= before.items()
    assert sorted(_kept(tmp_path)) == [11, 12, 13]


def test_what_is_kept_is_of_the_same_code_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Kept(tmp_path, Report) as kept:
        for seed in (7, 8):
            kept.add(_report(seed))
    with kept.path.open("ab") as file:
        file.write(b'{"seed": 9, "mo')  # it was ended in the middle
    with Kept(tmp_path, Report) as again:
        assert [each.seed for each in wanted(again.before, [6, 7, 8, 9], None)] == [7, 8]
        assert [each.seed for each in wanted(again.before, [6, 7, 8, 9], Mode.SAFETY)] == [7]
        again.add(_report(9))
    with Kept(tmp_path, Report) as again:
        assert len(wanted(again.before, [7, 8, 9], None)) == 3
    monkeypatch.setattr("chaos.kept.code", lambda: "changed")
    with Kept(tmp_path, Report) as changed:
        assert not changed.before


@pytest.mark.timeout(240)
@pytest.mark.parametrize("mutant", PLAYED, ids=lambda mutant: mutant.name)
def test_a_broken_build_is_found_out(simulate: Simulate, mutant: Mutant, tmp_path: Path):
    first, every = 1, CHORES_EVERY if mutant.name in WITH_CHORES | WITH_LINES else 1
    if mutant.name in WITH_CHORES:
        first = CHORES_EVERY
    elif mutant.name in WITH_TIMES:
        first, every = FIRST_OF_TIMES, TIMES_EVERY
    first = SOONER.get(mutant.name, first)
    source = build(mutant, tmp_path)
    done = simulate(*("--stop", "--first", str(first), "--every", str(every), "--seeds", str(ENOUGH)), source=source)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^seed \d+ \(\w+\): S\d+ ", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_no_statement_asks_for_the_time_in_a_way_that_the_simulation_cannot_answer():
    others = re.compile(r"\b(current_(timestamp|time|date)|localtime\w*|transaction_timestamp|timeofday)\b")
    for folder in ("sql", "migrations"):
        for path in files("foliot.store").joinpath(folder).iterdir():
            assert not others.search(path.read_text().lower()), path.name


def _report(seed: int) -> Report:
    return Report(
        seed=seed,
        mode=mode_of(seed, None),
        seconds=1.0,
        took=1.0,
        statements=1,
        acknowledged=1,
        effects=1,
        faults=0,
        rare={},
        failures=[],
        fingerprint="",
        story=[],
    )


def _kept(folder: Path) -> dict[int, dict[str, Any]]:
    """What became of each seed, but for how long it took."""
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_bytes().splitlines(keepends=True)]
    reports = [msgspec.json.decode(line) for line in lines if line.endswith(b"\n")]
    return {each["seed"]: {**each, "took": None} for each in reports}


def _number(said: str, path: str) -> int:
    found = re.search(rf"^{re.escape(path)}: ([\d,]+)$", said, re.MULTILINE)
    assert found is not None, said
    return int(found[1].replace(",", ""))
