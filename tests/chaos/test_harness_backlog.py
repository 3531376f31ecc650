"""The backlog of a chaos run is what was handed in and has not ended: nothing else can make it look smaller."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from aiohttp import web

from chaos.backlog import GIVEN_UP, Backlog
from chaos.client import Api
from chaos.driver import Driver
from chaos.ledger import Ledger, Target
from chaos.patience import until
from chaos.records import Effect, Operation, Outcome, Phase, digest
from foliot.kit.tasks import background

CALLS = 12
"""So many are answered, and then nobody says a word."""


def payload(serial: int) -> dict[str, str]:
    return {"tenant": "acme", "serial": f"0.{serial}"}


def end(name: str, **more: Any) -> Effect:
    told = {"tenant": "acme", "run": f"run_{name}", "attempt": 1, "fence": 1, "worker": "w"}
    return Effect(seq=0, at=0.0, phase=Phase.END, payload=name, **told, **more)


class Answering:
    """An API that takes everything; of every batch the first has ended before its client is told, three times over."""

    def __init__(self, ledger: Ledger) -> None:
        self.waited_for: set[str] = set()
        self.silent = asyncio.Event()
        self._ledger = ledger
        self._calls = itertools.count(1)

    async def call(self, kind: str, *, client: int, tenant: str, body: Any = None, **_: Any) -> Operation:
        number = next(self._calls)
        if number > CALLS:
            self.silent.set()
            await asyncio.Event().wait()
        runs = body.get("runs", [body]) if kind in {"createRun", "createRuns"} else []
        well = [digest(run["payload"]) for run in runs if ends_well(run)]
        self._ledger.append([end(name) for name in well[:1] * 3])
        self.waited_for |= {*well[1:]}
        done: dict[str, Any] = {"outcome": Outcome.OK, "body": body, "answer": {"jobId": f"job_{number}"}}
        return Operation(number=number, client=client, tenant=tenant, kind=kind, invoked=0.0, completed=0.0, **done)


def ends_well(run: dict[str, Any]) -> bool:
    once, unpunctual = run.get("delivery") == "atMostOnce", "timeoutSeconds" in run
    return not once and not unpunctual and run["payload"].get("fail", 0) <= run.get("maxRetries", 3)


@asynccontextmanager
async def counting(ledger: Ledger) -> AsyncIterator[str]:
    runner = web.AppRunner(web.Application())
    runner.app.router.add_get("/count", Target(ledger).count)
    await runner.setup()
    async with background(ledger.run()):
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        await runner.cleanup()


async def test_neither_duplicates_nor_what_others_handed_in_hide_a_backlog(tmp_path: Path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append([end(f"another's {number}") for number in range(10_000)])
    ledger.append([end("of a job", job="job_a"), end("that failed", failed=True)])
    api = Answering(ledger)
    async with counting(ledger) as url:
        driver = Driver(cast("Api", api), 7, url, rate=100_000.0, chores=False)
        running = asyncio.create_task(driver.run(time.time() + 60))
        await asyncio.wait_for(api.silent.wait(), 20)
        assert await until(lambda: 0 < driver.backlog == len(api.waited_for), 20)
        ledger.append([end(name) for name in api.waited_for])
        assert await until(lambda: driver.backlog == 0, 20)
        running.cancel()
        await asyncio.wait([running])


def test_what_has_ended_before_its_client_was_told_is_not_waited_for():
    backlog = Backlog()
    backlog.end([digest(payload(1))], 1.0)
    backlog.hand_in([payload(1), payload(2)], 2.0)
    assert len(backlog) == 1


def test_what_is_told_twice_counts_once():
    backlog = Backlog()
    backlog.hand_in([payload(1), payload(2), payload(2)], 1.0)
    for _ in range(2):
        backlog.end([digest(payload(1))], 2.0)
    assert len(backlog) == 1


def test_nobody_waits_for_ever_for_what_never_ends():
    backlog = Backlog()
    backlog.hand_in([payload(1)], 1.0)
    backlog.hand_in([payload(2)], 2.0)
    backlog.end([], 1.5 + GIVEN_UP)
    assert len(backlog) == 1
