"""Commands of the chaos application: they report like every other handler, and none of them stays unnoticed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from chaos.barracks import Barracks
from chaos.cancels import FOR_LONG
from chaos.commands import LONG_EVERY, Commander
from chaos.ledger import Ledger, serve_reports
from chaos.newest import Newest
from chaos.plan import ONCE
from chaos.records import Effect, Phase, digest, read_lines
from foliot.cli.commands import read_policy
from foliot.kit.tasks import background
from notebook import Notebook
from worker.making import eventually

RUN = {
    "FOLIOT_RUN": "run_a",
    "FOLIOT_JOB": "job_b",
    "FOLIOT_ATTEMPT": "1",
    "FOLIOT_FENCE": "7",
    "FOLIOT_SCHEDULED_AT": "2026-11-15T20:16:25.250000Z",
}
WORKER = """
import os, subprocess, sys
del os.environ["CHAOS_BOOT"]
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""
"""Has a name, and tells its commands nothing of it."""
ARGV = ("/usr/bin/python3", "-I", "emitter.py", "ledger.sock")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands run on Linux only")


async def asked(seed: int) -> Notebook:
    told = Notebook()
    commander, newest = Commander(told, seed, 0, "acme", ARGV), Newest(told, seed, 0, "acme", ARGV)
    for _ in range(LONG_EVERY):
        await commander.step()
        await newest.step()
    await commander.finish()
    return told


async def test_chores_come_from_the_seed_alone_and_cancel_what_would_go_on(monkeypatch: pytest.MonkeyPatch):
    pause = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _: pause(0))
    told = await asked(7)
    assert told.calls == (await asked(7)).calls != (await asked(8)).calls
    runs = told.bodies("createRuns", "runs")
    assert all(run["handler"] == {"type": "command", "argv": list(ARGV)} for run in runs)
    assert len({run["payload"]["serial"] for run in runs}) == len(runs)
    # Those that end by themselves are delivered at most once now and then, and are then not tried again.
    usual = [run for run in runs if run["payload"]["slow"] != FOR_LONG]
    once = [run for run in usual if run.get("delivery") == "atMostOnce"]
    assert len(once) == len(usual) // ONCE > 0
    assert {run["maxRetries"] for run in once} == {0}
    assert not [run for run in runs if run not in usual and "delivery" in run]
    # What would take for ever and has no time-out is cancelled: the last of every other batch.
    batches = [(each.number, (each.body or {})["runs"]) for each in told.calls if each.kind == "createRuns"]
    endless = [f"run_{number}.{len(some) - 1}" for number, some in batches if "timeoutSeconds" not in some[-1]]
    assert [each.run for each in told.calls if each.kind == "cancelRun"] == endless
    assert len(endless) == LONG_EVERY // 2
    jobs = told.bodies("createJob", "jobs")
    assert {job["overlap"] for job in jobs} == {"cancelPrevious"}
    assert len(jobs) == 2


@asynccontextmanager
async def reporting(folder: Path, *, guard: bool = False) -> AsyncIterator[Ledger]:
    ledger = Ledger(folder / "ledger.jsonl", guard=guard)
    server = await asyncio.start_unix_server(
        lambda reader, writer: serve_reports(ledger, reader, writer), folder / "ledger.sock"
    )
    async with background(ledger.run()):
        yield ledger
    server.close()


async def run(argv: tuple[str, ...], payload: dict[str, Any], **more: str) -> int:
    process = await asyncio.create_subprocess_exec(
        *argv, env=RUN | more, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    await process.communicate(msgspec.json.encode(payload))
    return process.returncode or 0


async def test_a_command_reports_like_any_other_handler(tmp_path: Path):
    barracks = Barracks(tmp_path, tmp_path / "ledger.sock")
    payload = {"tenant": "acme", "serial": "250.1", "slow": 0.6, "fail": 1, "name": "Grüße", "numbers": [1, 24.0, 0.35]}
    payload["account"] = "7"
    async with reporting(tmp_path):
        assert await run((sys.executable, "-c", WORKER, *barracks.argv), payload, CHAOS_BOOT="worker-2.3") == 1
    effects = read_lines(tmp_path / "ledger.jsonl", Effect)
    assert [each.phase for each in effects] == [Phase.START, Phase.BEAT, Phase.EFFECT, Phase.END]
    first, *_, last = effects
    assert (first.run, first.job, first.attempt, first.fence, first.scheduled_at) == (
        "run_a", "job_b", 1, 7, 1_794_773_785.25
    )  # fmt: skip
    assert {(each.worker, each.concurrency_key) for each in effects} == {("worker-2.3", "7")}
    assert {each.payload for each in effects} == {digest(payload)}
    assert all(each.isolated and each.nonce == first.nonce for each in effects)
    assert last.failed


async def test_a_command_that_has_lost_its_run_is_refused_and_ends_with_a_failure(tmp_path: Path):
    barracks = Barracks(tmp_path, tmp_path / "ledger.sock")
    payload = {"tenant": "acme", "serial": "250.3", "slow": 5.0}
    async with reporting(tmp_path, guard=True) as ledger:
        old = asyncio.create_task(run(barracks.argv, payload))
        await eventually(lambda: ledger.counts[Phase.START] == 1)
        assert await run(barracks.argv, payload | {"slow": 0.0}, FOLIOT_FENCE="8") == 0
        assert await old == 1
        assert await run(barracks.argv, payload) == 1
    told = [(each.phase, each.fence, each.refused) for each in read_lines(tmp_path / "ledger.jsonl", Effect)]
    # One was in the middle of its work, and one had not begun it.
    assert [each for each in told if each[0] is Phase.REJECTED] == [
        (Phase.REJECTED, 7, Phase.BEAT),
        (Phase.REJECTED, 7, Phase.START),
    ]
    assert (Phase.END, 8, None) in told


async def test_whom_a_command_leaves_behind_tells_that_it_is_alive_and_is_found(tmp_path: Path):
    barracks = Barracks(tmp_path, tmp_path / "ledger.sock")
    async with reporting(tmp_path) as ledger:
        assert await run(barracks.argv, {"tenant": "acme", "serial": "250.2", "leaves": True}) == 0
        try:
            await eventually(lambda: ledger.counts[Phase.BEAT] > 0)
            (left,) = barracks.living()
            assert {each.worker for each in read_lines(tmp_path / "ledger.jsonl", Effect)} == {""}
            assert str(tmp_path) in left
        finally:
            barracks.clear()
        await eventually(lambda: not barracks.living())


def test_the_operator_allows_just_this_command(tmp_path: Path):
    barracks = Barracks(tmp_path, tmp_path / "ledger.sock")
    rights = read_policy(Path(barracks.environment()["FOLIOT_COMMANDS"])).of("acme")
    assert rights is not None
    assert rights.allows(barracks.argv[0], barracks.argv)
    assert not rights.allows(barracks.argv[0], (barracks.argv[0], "-c", "pass"))
    assert set(rights.readable) == {barracks.argv[2], barracks.argv[3]}
