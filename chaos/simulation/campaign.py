"""Many seeds, shared out among processes; each has a database of its own on one server."""

import asyncio
import hashlib
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final

import msgspec
import structlog

from chaos.simulation.ground import Ground
from chaos.simulation.loop import VirtualLoop
from chaos.simulation.run import Mode, Outcome, simulate

LIVENESS_EVERY: Final = 4
"""Of so many seeds one is simulated for liveness."""


ELSEWHERE: Final = frozenset(
    {
        "effects in the run's transaction",
        "effects taken back",
        "attempts of a remote worker",
        "committed by its caller",
        "rolled back by its caller",
        "cut when its caller committed",
        "tenants weighed anew",
        "keys used",
        "revoked keys refused",
        "replaced keys refused",
        "keys of others refused",
        "keys refused beyond their role",
        "changes of the version that was meant",
        "changes refused as stale",
        "audit entries in their chains",
        "denied calls in the audit trail",
        "jobs refused by a quota",
        "calls refused by a rate limit",
        "payloads stored encrypted",
        "data keys replaced",
    }
)
"""Rare paths that need what the simulation lacks: a wire of the handler's own, the gateway, a command line; or clients
with keys of their own."""


class Report(msgspec.Struct, frozen=True):
    """What the campaign keeps of a seed."""

    seed: int
    mode: Mode
    seconds: float
    """Of virtual time."""
    took: float
    """Real seconds."""
    statements: int
    acknowledged: int
    effects: int
    faults: int
    rare: dict[str, int]
    failures: list[str]
    fingerprint: str
    story: list[str]


def mode_of(seed: int, wanted: Mode | None) -> Mode:
    if wanted is not None:
        return wanted
    return Mode.LIVENESS if seed % LIVENESS_EVERY == 0 else Mode.SAFETY


@contextmanager
def simulating(dsn: str, name: str) -> Iterator[Callable[[int, Mode], Outcome]]:
    """A virtual world on a database called `name`; one seed after the other can be run in it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    ground = loop.run_until_complete(Ground.make(loop, dsn, name))
    try:
        yield lambda seed, mode: loop.run_until_complete(simulate(ground, seed, mode))
    finally:
        loop.run_until_complete(ground.close())
        asyncio.set_event_loop(None)
        loop.close()


def report(outcome: Outcome, took: float) -> Report:
    verdict, failures = outcome.verdict, outcome.failures
    return Report(
        seed=outcome.seed,
        mode=outcome.mode,
        seconds=outcome.seconds,
        took=took,
        statements=outcome.statements,
        acknowledged=verdict.acknowledged,
        effects=verdict.effects,
        faults=verdict.faults,
        rare=verdict.rare,
        failures=failures,
        fingerprint=outcome.fingerprint,
        story=[*outcome.story, *verdict.to_markdown().splitlines()] if failures else [],
    )


def _share(dsn: str, name: str, seeds: list[int], wanted: Mode | None, core: int, pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it goes to all of us at once; who started us ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[core % len(cores)]})
    with simulating(dsn, name) as run:
        if len(seeds) == 1:
            # To be seen again as it was among others: the first in a new database goes another way, because connections
            # that know no statement yet ask more of the server.
            run(seeds[0], mode_of(seeds[0], wanted))
        for seed in seeds:
            began = time.monotonic()
            outcome = run(seed, mode_of(seed, wanted))
            pipe.send_bytes(msgspec.msgpack.encode(report(outcome, time.monotonic() - began)))
    pipe.close()


def campaign(
    dsn: str, seeds: list[int], wanted: Mode | None, processes: int, name: str, core: int = 0
) -> Iterator[Report]:
    """Run all seeds, in databases of that name; reports come as they are ready. Each process keeps to one core."""
    # A set of texts has another order in every process, unless it is told not to.
    os.environ["PYTHONHASHSEED"] = "0"
    spawning = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    shares: list[SpawnProcess] = []
    for number in range(processes):
        ours, theirs = spawning.Pipe(duplex=False)
        arguments = (dsn, f"{name}_{number}", seeds[number::processes], wanted, core + number, theirs)
        share = spawning.Process(target=_share, args=arguments, daemon=True)
        share.start()
        theirs.close()
        pipes.append(ours)
        shares.append(share)
    decoder = msgspec.msgpack.Decoder(Report)
    try:
        while pipes:
            for pipe in wait(pipes):
                try:
                    yield decoder.decode(pipe.recv_bytes())  # type: ignore[union-attr]
                except EOFError:
                    pipes.remove(pipe)  # type: ignore[arg-type]
        for share in shares:
            share.join()
            if share.exitcode:
                raise RuntimeError(f"a simulating process ended with {share.exitcode}")
    finally:
        for share in shares:
            share.kill()
            share.join()


class Tally:
    """What all seeds together saw."""

    def __init__(self) -> None:
        self.seeds: Counter[Mode] = Counter()
        self.rare: Counter[str] = Counter()
        self.acknowledged = self.effects = self.faults = self.statements = 0
        self.virtual = self.took = 0.0
        self.failed: list[Report] = []
        self._fingerprints: dict[int, str] = {}

    def add(self, each: Report) -> None:
        self.seeds[each.mode] += 1
        self.rare.update(each.rare)
        self.acknowledged += each.acknowledged
        self.effects += each.effects
        self.faults += each.faults
        self.statements += each.statements
        self.virtual += each.seconds
        self.took += each.took
        self._fingerprints[each.seed] = each.fingerprint
        if each.failures:
            self.failed.append(each)

    @property
    def never(self) -> list[str]:
        return sorted(path for path, times in self.rare.items() if not times and path not in ELSEWHERE)

    @property
    def fingerprint(self) -> str:
        """The same for two campaigns of the same seeds in which the same happened."""
        text = " ".join(self._fingerprints[seed] for seed in sorted(self._fingerprints))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def line(self) -> str:
        return (
            f"simulation: {self.seeds.total():,} seeds, {self.acknowledged:,} acknowledged, {self.faults:,} faults,"
            f" {len(self.failed)} failed"
        )


def keep_story(folder: Path, failed: Report) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"seed-{failed.seed}-{failed.mode}.txt"
    path.write_text("\n".join([*failed.failures, "", *failed.story]) + "\n")
    return path
