"""A ledger in guard mode before real workers: who has lost its run is refused, and whoever has it comes to its end."""

import asyncio
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from chaos.ends import ENDS, FAILED, End, by_itself
from chaos.ledger import Ledger, Target, serve_reports
from chaos.node import Node
from chaos.patience import until
from chaos.records import Effect, Phase, read_lines
from chaos.topology import ROOT
from foliot.domain.ids import encode
from foliot.domain.spec import FunctionHandler, HttpHandler, Spec
from foliot.kit.tasks import background
from foliot.services.reap import Reaper
from foliot.store.submission import NewRun

PATIENCE = 60.0
PAYLOAD = {"tenant": "acme", "serial": "1.1", "slow": 10.0}
NAMES = ("worker-0", "worker-1", "worker-2")
"""One more than there are runs: whoever has none takes over."""
HOLDERS = "SELECT DISTINCT name FROM worker JOIN claim ON claim.worker = worker.id WHERE claim.runs && $1::bigint[]"


@asynccontextmanager
async def workers(dsn: str, folder: Path):
    environment = {"FOLIOT_HOME": str(folder), "FOLIOT_DATABASE_URL": dsn, "FOLIOT_SUPERVISED": "1"}
    environment |= {"FOLIOT_HTTP_ALLOW": "*", "CHAOS_LEDGER": str(folder / "ledger.sock")}
    command = [sys.executable, "-m", "foliot", "worker", "chaos.app:worker"]
    stop = asyncio.Event()
    nodes = [Node(n, command, environment, folder / f"{n}.log", folder=ROOT, ends=folder / ENDS) for n in NAMES]
    async with asyncio.TaskGroup() as group:
        for node in nodes:
            group.create_task(node.keep(stop))
        try:
            yield nodes
        finally:
            stop.set()


@asynccontextmanager
async def target(ledger: Ledger, folder: Path):
    """Where HTTP handlers call; functions report to the socket beside it."""

    async def report(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve_reports(ledger, reader, writer)

    runner = web.AppRunner(web.Application())
    runner.app.router.add_post("/do", Target(ledger).handle)
    await runner.setup()
    server = await asyncio.start_unix_server(report, folder / "ledger.sock")
    async with background(ledger.run()):
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/do"
        await runner.cleanup()
    server.close()


@pytest.mark.timeout(240)
async def test_who_has_lost_its_run_is_refused_and_the_other_one_completes_it(world, dsn, database, tmp_path):
    path = tmp_path / "ledger.jsonl"

    def seen(phase: Phase, run: str = "") -> list[Effect]:
        return [each for each in read_lines(path, Effect) if each.phase is phase and each.run.startswith(run)]

    async with target(Ledger(path, guard=True), tmp_path) as url, workers(dsn, tmp_path) as nodes:
        await world.until(f"SELECT count(*) = {len(NAMES)} FROM worker")
        handlers = (HttpHandler(url=url), FunctionHandler(name="slow"))
        specs = [await world.specs.intern(world.tenant, Spec(handler=handler)) for handler in handlers]
        runs = (await world.submitter.submit([NewRun(spec, msgspec.json.encode(PAYLOAD)) for spec in specs])).ids
        web_run, function_run = (encode("run", run) for run in runs)
        assert await until(lambda: len(seen(Phase.START)) == 2, PATIENCE)
        names = [row["name"] for row in await world.sql(HOLDERS, list(runs))]
        holders = [node for node in nodes if any(name.endswith(f":{node.pid}") for name in names)]
        for holder in holders:
            holder.signal(signal.SIGSTOP)  # its call goes on all the same, on the other side; its function does not
        await world.sql("UPDATE worker SET state = 2 WHERE name = ANY ($1::text[])", names)
        reaper = Reaper(database)
        while await reaper.run_once():
            pass
        await reaper.close()
        assert await until(lambda: len(seen(Phase.START)) == 4 and seen(Phase.REJECTED, web_run), PATIENCE)
        for holder in holders:
            holder.signal(signal.SIGCONT)
        assert await until(lambda: seen(Phase.REJECTED, function_run), PATIENCE)
        assert await until(lambda: len(seen(Phase.END)) == 2, PATIENCE)
        await world.until("SELECT count(*) = 2 FROM history WHERE run = ANY ($1::bigint[]) AND state = 4", list(runs))
        for holder in holders:
            assert await holder.until_reborn(f"{holder.name}.1", PATIENCE)
    # They were declared dead, and had to end; the rest was told to.
    assert {each.name: each.status for each in read_lines(tmp_path / ENDS, End)} == {
        f"{holder.name}.1": FAILED for holder in holders
    }
    assert by_itself(tmp_path) == []
    for run, name in zip(runs, (web_run, function_run), strict=True):
        (end,) = seen(Phase.END, name)
        first, second = seen(Phase.START, name)
        assert first.fence < second.fence == end.fence
        assert [(each.fence, each.refused) for each in seen(Phase.REJECTED, name)] == [(first.fence, Phase.BEAT)]
        assert await world.value("SELECT fence FROM history WHERE run = $1 AND ending = 1", run) == end.fence
