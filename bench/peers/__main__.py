"""`make bench-peers`: every peer once, then every peer again, so that a noisy hour hits them all."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final

from bench.peers.adapters import PEERS
from bench.peers.adapters.floor import FloorRepeat
from bench.peers.candidates import fastest, in_words, try_out
from bench.peers.installing import CannotInstallError, node_version
from bench.peers.measure import Repeat
from bench.peers.peer import Home, Peer, StoreName
from bench.peers.plan import Plan
from bench.peers.report import publish
from bench.peers.results import Results, lacking
from bench.peers.servers import Postgres, Store, redis
from foliot.bench.bed import server
from foliot.bench.machine import ROOT, commit, describe_machine

CACHE: Final = ROOT / ".foliot-peers"


class Run:
    """All that is still due, one after the other, within the plan's time: first what is to be tried, then repeats."""

    def __init__(self, plan: Plan, results: Results, stack: AsyncExitStack, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._results = results
        self._stack = stack
        self._say = say
        self._began = time.monotonic()
        self._stores: dict[StoreName, Store] = {}
        self._costs: dict[str, float] = {}
        self.machine: dict[str, Any] = {}

    async def run(self, peers: tuple[Peer, ...]) -> None:
        for peer in peers:
            if self._results.is_untried(peer):
                await self._try_out(peer)
        for number in range(self._plan.repeats):
            for peer in peers:
                if not self._results.is_due(peer, number):
                    continue
                if self._is_late(peer):
                    self._say(f"{peer.name}: repeat {number + 1} is left for the next run, the time is used up")
                    continue
                await self._measure(peer, number)

    def _is_late(self, peer: Peer) -> bool:
        return self._costs.get(peer.name, 12 * self._plan.seconds) > self._left()

    def _left(self) -> float:
        return 60 * self._plan.minutes - (time.monotonic() - self._began)

    async def _try_out(self, peer: Peer) -> None:
        self._say(f"{peer.name}: {len(peer.candidates)} settings are tried")
        ready = await self._ready(peer)
        if ready is None:
            return
        tried: list[dict[str, Any]] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(self._left()):
                tried = await try_out(*ready, self._plan)
        for told in tried:
            self._say(f"{peer.name}: {told['settings']}: {in_words(told)}")
        if chosen := fastest(tried):
            self._results.keep_tries(peer, tried, chosen["settings"])

    async def _ready(self, peer: Peer) -> tuple[Home, Store] | None:
        try:
            home = await asyncio.to_thread(Home.made, peer, CACHE, sys.executable)
            if peer.runtime == "node":
                self.machine["node"] = await asyncio.to_thread(node_version)
            return home, await self._store(peer.store)
        except CannotInstallError as error:
            self._results.refuse(peer, str(error))
            self._say(f"{peer.name}: not measured: {error}")
            return None

    async def _measure(self, peer: Peer, number: int) -> None:
        minutes = (time.monotonic() - self._began) / 60
        self._say(f"{peer.name}: repeat {number + 1} of {self._plan.repeats} ({minutes:.1f} min)")
        ready = await self._ready(self._results.chosen(peer))
        if ready is None:
            return
        home, store = ready
        load, started = os.getloadavg()[0], time.monotonic()
        repeat: Repeat | FloorRepeat
        if peer.name == "floor":
            repeat = FloorRepeat(home, store, self._plan, self._results.load(peer)["repeats"])
        else:
            repeat = Repeat(home, store, self._plan)
        try:
            async with asyncio.timeout(self._left()):
                numbers = await repeat.run()
        except TimeoutError:
            numbers = {"errors": {"all": "the time was used up"}}
        self._costs[peer.name] = time.monotonic() - started
        for cell, why in numbers["errors"].items():
            self._say(f"{peer.name}: {cell}: {why}")
        if any(isinstance(value, float | dict) for name, value in numbers.items() if name not in {"errors", "tuned"}):
            self._results.add(peer, {**numbers, "loadBefore": load, "seconds": time.monotonic() - started})
        else:
            self._results.refuse(peer, "; ".join(numbers["errors"].values()))

    async def _store(self, name: StoreName) -> Store:
        if name not in self._stores:
            if name == "postgres":
                postgres = Postgres((await asyncio.to_thread(self._stack.enter_context, server())).dsn)
                self.machine["postgres"] = await postgres.settings()
                self._stores[name] = postgres
            else:
                started = await asyncio.to_thread(self._stack.enter_context, redis(CACHE / "servers"))
                self.machine["redis"] = await started.version()
                self._stores[name] = started
        return self._stores[name]


async def main(plan: Plan) -> None:
    """Measure what is due, then write the report from all that this folder of results holds."""
    unknown = set(plan.only) - {peer.name for peer in PEERS}
    if unknown:
        raise SystemExit(f"no such peer: {', '.join(unknown)}; there are {', '.join(peer.name for peer in PEERS)}")
    peers = tuple(peer for peer in PEERS if not plan.only or peer.name in plan.only)
    mark = commit()
    folder = CACHE / "results" / f"{mark}-{plan.seconds:g}s-{plan.runs}"
    results = Results(folder, plan.repeats)
    for peer in peers if plan.fresh else ():
        results.forget(peer)
    _end_on_term()
    async with AsyncExitStack() as stack:
        run = Run(plan, results, stack, lambda text: print(text, file=sys.stderr, flush=True))
        await run.run(peers)
    machine = _machine(folder / "machine.json", run.machine)
    _publish(folder, plan, mark, {"machine": machine, "peers": [results.load(peer) for peer in PEERS]})


def _machine(file: Path, seen: dict[str, Any]) -> dict[str, Any]:
    """The machine and its servers: what this run has seen, and of what it did not need, what earlier ones have."""
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if known and not seen:
        return known
    machine = {**known, **describe_machine(), **seen}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(machine))
    return machine


def _end_on_term() -> None:
    """A polite end is an end like Ctrl-C: the servers and workers are ended with us."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _publish(folder: Path, plan: Plan, mark: str, found: dict[str, Any]) -> None:
    """Into docs/proof only what was measured in full, every peer in every repeat; the rest stays with its results."""
    full = plan.seconds >= Plan.seconds and plan.runs >= Plan.runs and plan.repeats >= Plan.repeats
    complete = full and not lacking(found["peers"], plan.repeats)
    target = ROOT / "docs" / "proof" / f"peers-{mark}" if complete else folder / "report"
    found |= {"commit": mark, "seconds": plan.seconds, "latencySeconds": plan.latency_seconds, "runs": plan.runs}
    found |= {"repeats": plan.repeats, "trySeconds": plan.try_seconds, "full": full}
    publish(target, found)
    print((target / "peers.md").read_text())
    print(f"written to {target}", file=sys.stderr)


if __name__ == "__main__":
    try:
        asyncio.run(main(Plan.read()))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit("stopped; what was measured is kept, the next run goes on from there")
