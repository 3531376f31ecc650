"""A ledger in guard mode before real workers: who has lost its run is refused, and whoever has it comes to its end."""

import asyncio
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from chaos.ledger import Ledger, Target
from chaos.node import Node
from chaos.patience import until
from chaos.records import Effect, Phase, read_lines
from chaos.topology import ROOT
from foliot.domain.spec import HttpHandler, Spec
from foliot.kit.tasks import background
from foliot.services.reap import Reaper
from foliot.store.submission import NewRun

PATIENCE = 60.0
PAYLOAD = {"tenant": "acme", "serial": "1.1", "slow": 10.0}
HOLDER = "SELECT name FROM worker JOIN claim ON claim.worker = worker.id WHERE $1 = ANY (claim.runs)"


@asynccontextmanager
async def workers(dsn: str, folder: Path):
    environment = {"FOLIOT_HOME": str(folder), "FOLIOT_DATABASE_URL": dsn, "FOLIOT_SUPERVISED": "1"}
    environment |= {"FOLIOT_HTTP_ALLOW": "*"}
    command = [sys.executable, "-m", "foliot", "worker"]
    names, stop = ("worker-0", "worker-1"), asyncio.Event()
    nodes = [Node(name, command, environment, folder / f"{name}.log", folder=ROOT) for name in names]
    async with asyncio.TaskGroup() as group:
        for node in nodes:
            group.create_task(node.keep(stop))
        try:
            yield nodes
        finally:
            stop.set()


@asynccontextmanager
async def target(ledger: Ledger):
    runner = web.AppRunner(web.Application())
    runner.app.router.add_post("/do", Target(ledger).handle)
    await runner.setup()
    async with background(ledger.run()):
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/do"
        await runner.cleanup()


@pytest.mark.timeout(240)
async def test_who_has_lost_its_run_is_refused_and_the_other_one_completes_it(world, dsn, database, tmp_path):
    path = tmp_path / "ledger.jsonl"

    def seen(phase: Phase) -> list[Effect]:
        return [each for each in read_lines(path, Effect) if each.phase is phase]

    async with target(Ledger(path, guard=True)) as url, workers(dsn, tmp_path) as nodes:
        await world.until("SELECT count(*) = 2 FROM worker")
        spec = await world.specs.intern(world.tenant, Spec(handler=HttpHandler(url=url)))
        (run,) = (await world.submitter.submit([NewRun(spec, msgspec.json.encode(PAYLOAD))])).ids
        assert await until(lambda: len(seen(Phase.START)) == 1, PATIENCE)
        name = await world.value(HOLDER, run)
        holder = next(node for node in nodes if name.endswith(f":{node.pid}"))
        holder.signal(signal.SIGSTOP)  # its call goes on all the same, on the other side
        await world.sql("UPDATE worker SET state = 2 WHERE name = $1", name)
        reaper = Reaper(database)
        await reaper.run_once()
        await reaper.close()
        assert await until(lambda: seen(Phase.REJECTED), PATIENCE)
        holder.signal(signal.SIGCONT)
        assert await until(lambda: seen(Phase.END), PATIENCE)
        await world.until("SELECT EXISTS (SELECT FROM history WHERE run = $1 AND state = 4)", run)
    (end,) = seen(Phase.END)
    first, second = seen(Phase.START)
    assert first.fence < second.fence == end.fence
    assert [each.fence for each in seen(Phase.REJECTED)] == [first.fence]
    assert await world.value("SELECT fence FROM history WHERE run = $1 AND ending = 1", run) == end.fence
