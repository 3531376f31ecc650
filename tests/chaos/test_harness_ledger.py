"""The ledger says nothing that is not on disk, and in guard mode lets no zombie write."""

import asyncio
import os
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from chaos.act import Act
from chaos.ledger import Ledger, Target, serve_reports
from chaos.patience import until
from chaos.records import CONFIDED, CONFIDENCE, Effect, Phase, digest, read_lines
from chaos.reporter import FencedOut, Reporter
from foliot.kit.tasks import background


def effect(phase: Phase = Phase.START, *, run: str = "run_a", fence: int = 1, **fields) -> Effect:
    return Effect(seq=0, at=0.0, phase=phase, tenant="acme", run=run, attempt=1, fence=fence, worker="w", **fields)


@asynccontextmanager
async def reporting(ledger: Ledger, folder: Path):
    async def report(reader, writer):
        await serve_reports(ledger, reader, writer)

    socket = folder / "ledger.sock"
    server = await asyncio.start_unix_server(report, socket)
    reporter = Reporter(socket)
    async with background(ledger.run()):
        yield reporter
    await reporter.close()
    server.close()


async def test_a_report_is_answered_only_after_it_was_synced(tmp_path: Path):
    asked, may_end = threading.Event(), threading.Event()

    def sync(file: int) -> None:
        asked.set()
        may_end.wait(10)
        os.fsync(file)

    ledger = Ledger(tmp_path / "ledger.jsonl", sync=sync)
    async with reporting(ledger, tmp_path) as reporter:
        saying = asyncio.create_task(reporter.say(effect()))
        await asyncio.to_thread(asked.wait, 10)
        assert not saying.done()
        may_end.set()
        await saying
    assert [each.run for each in read_lines(tmp_path / "ledger.jsonl", Effect)] == ["run_a"]


async def test_what_arrives_during_one_sync_is_written_by_the_next(tmp_path: Path):
    synced = []
    ledger = Ledger(tmp_path / "ledger.jsonl", sync=lambda file: synced.append(os.fstat(file).st_size))
    async with reporting(ledger, tmp_path) as reporter:
        await asyncio.gather(*(reporter.say(effect(run=f"run_{n}"), effect(Phase.END)) for n in range(200)))
    found = read_lines(tmp_path / "ledger.jsonl", Effect)
    assert [each.seq for each in found] == list(range(1, 401))
    assert len(synced) < 200
    assert synced[-1] == (tmp_path / "ledger.jsonl").stat().st_size


async def test_the_guard_refuses_a_lower_fence_and_writes_that_down(tmp_path: Path):
    ledger = Ledger(tmp_path / "ledger.jsonl", guard=True)
    async with reporting(ledger, tmp_path) as reporter:
        await reporter.say(effect(fence=1))
        await reporter.say(effect(fence=7))
        with pytest.raises(FencedOut):
            await reporter.say(effect(Phase.END, fence=1))
        await reporter.say(effect(Phase.END, fence=7))
        await reporter.say(effect(run="run_b", fence=2))
    found = read_lines(tmp_path / "ledger.jsonl", Effect)
    assert [each.phase for each in found] == [Phase.START, Phase.START, Phase.REJECTED, Phase.END, Phase.START]
    assert [each.refused for each in found] == [None, None, Phase.END, None, None]


async def test_in_observe_mode_everything_is_written(tmp_path: Path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    async with reporting(ledger, tmp_path) as reporter:
        await reporter.say(effect(fence=7))
        await reporter.say(effect(fence=1))
    assert ledger.counts[Phase.START] == 2


@asynccontextmanager
async def target(ledger: Ledger):
    app = web.Application()
    app.router.add_post("/do", Target(ledger).handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    async with background(ledger.run()):
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/do"
        await runner.cleanup()


def headers(attempt: int = 1, fence: int = 5) -> dict[str, str]:
    return {
        "Foliot-Run": "run_http",
        "Foliot-Attempt": str(attempt),
        "Foliot-Fence": str(fence),
        "Foliot-Scheduled-At": "2026-03-01T09:00:00Z",
    }


async def test_the_http_target_reports_for_its_caller_and_fails_as_planned(tmp_path: Path):
    payload = {"tenant": "acme", "serial": "1.1", "fail": 1}
    body = {"runId": "run_http", "jobId": "job_a", "payload": payload}
    ledger = Ledger(tmp_path / "ledger.jsonl", guard=True)
    async with target(ledger) as url, aiohttp.ClientSession() as session:
        statuses = []
        for attempt, fence in ((1, 5), (2, 6), (1, 5)):
            async with session.post(url, json=body, headers=headers(attempt, fence)) as answer:
                statuses.append(answer.status)
    assert statuses == [500, 200, 409]
    found = read_lines(tmp_path / "ledger.jsonl", Effect)
    assert [(each.phase, each.fence, each.failed) for each in found] == [
        (Phase.START, 5, False),
        (Phase.EFFECT, 5, False),
        (Phase.END, 5, True),
        (Phase.START, 6, False),
        (Phase.EFFECT, 6, False),
        (Phase.END, 6, False),
        (Phase.REJECTED, 5, False),
    ]
    assert (found[0].job, found[0].tenant, found[0].payload) == ("job_a", "acme", digest(payload))
    assert found[0].scheduled_at == 1772355600.0
    assert found[0].nonce != found[3].nonce


async def test_the_http_target_says_the_secret_that_it_was_given_and_reports_what_was_handed_in(tmp_path: Path):
    payload = {"tenant": "acme", "serial": "1.1", "fail": 1, "secret": f"{CONFIDED}1"}
    body = {"runId": "run_http", "jobId": None, "payload": payload}
    ledger, said = Ledger(tmp_path / "ledger.jsonl"), []
    async with target(ledger) as url, aiohttp.ClientSession() as session:
        for attempt in (1, 2):
            async with session.post(url, json=body, headers=headers(attempt, attempt)) as answer:
                said.append((answer.status, await answer.json()))
    assert said == [(500, {"said": f"{CONFIDED}1"}), (200, {"said": f"{CONFIDED}1"})]
    handed_in = payload | {"secret": {"$secret": CONFIDENCE}}
    assert {each.payload for each in read_lines(tmp_path / "ledger.jsonl", Effect)} == {digest(handed_in)}


async def test_a_zombie_is_refused_in_the_middle_of_its_work(tmp_path: Path):
    payload = {"tenant": "acme", "serial": "1.1", "slow": 0.7}
    body = {"runId": "run_http", "jobId": None, "payload": payload}
    ledger = Ledger(tmp_path / "ledger.jsonl", guard=True)
    async with target(ledger) as url, aiohttp.ClientSession() as session:

        async def call(attempt: int, fence: int) -> int:
            async with session.post(url, json=body, headers=headers(attempt, fence)) as answer:
                return answer.status

        old = asyncio.create_task(call(1, 5))
        assert await until(lambda: ledger.counts[Phase.EFFECT] == 1, 10)
        new = asyncio.create_task(call(2, 6))
        assert (await old, await new) == (409, 200)
    found = read_lines(tmp_path / "ledger.jsonl", Effect)
    assert [each.phase for each in found if each.fence == 5] == [Phase.START, Phase.EFFECT, Phase.REJECTED]
    assert [each.phase for each in found if each.fence == 6] == [Phase.START, Phase.EFFECT, Phase.BEAT, Phase.END]


async def test_slow_handlers_give_signs_of_life():
    beats = []

    async def beat() -> None:
        beats.append(1)

    await Act("acme", "1.1", slow=0.6).take_time(beat)
    assert len(beats) == 1


def test_the_digest_is_the_same_however_a_payload_is_spelled():
    assert (
        digest({"a": 1, "b": [1.5, None]}) == digest({"b": [1.5, None], "a": 1}) != digest({"a": 2, "b": [1.5, None]})
    )
