"""One process's share of the seeds, one after the other in a database of its own."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import msgspec
import structlog

from chaos.simulation.campaign import Report
from chaos.simulation.ground import Ground
from chaos.simulation.loop import VirtualLoop
from chaos.simulation.mode import Mode, mode_of
from chaos.simulation.run import Outcome, simulate


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
        rare=verdict.rare | outcome.lost,
        failures=failures,
        fingerprint=outcome.fingerprint,
        story=[*outcome.story, *verdict.to_markdown().splitlines()] if failures else [],
    )


def share(dsn: str, name: str, seeds: list[int], wanted: Mode | None, core: int, pipe: Connection) -> None:
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
            try:
                outcome = run(seed, mode_of(seed, wanted))
            except Exception as error:
                error.add_note(f"while seed {seed} was simulated")
                raise
            pipe.send_bytes(msgspec.msgpack.encode(report(outcome, time.monotonic() - began)))
    pipe.close()
