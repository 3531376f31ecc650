"""`python -m chaos.simulation`: many seeds in virtual time, over a real database. The last line says it all."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from chaos.simulation.campaign import Tally, campaign, keep_story
from chaos.simulation.report import write
from chaos.simulation.run import Mode
from foliot.kit.postgres import PostgresServer

SEEDS: Final = 10_000
ENOUGH: Final = 1_000
"""Seeds from which on every rare path must have been walked."""
PROGRESS: Final = 10.0


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - its output


def read() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", type=int, help="just this one, in the mode that it had")
    parser.add_argument("--mode", type=Mode, choices=list(Mode), help="all seeds in this one instead of both")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--stop", action="store_true", help="at the first seed that fails")
    parser.add_argument("--stories", type=Path, default=Path(tempfile.gettempdir()) / "foliot-simulation")
    parser.add_argument("--server", help="a PostgreSQL server to make databases on, instead of one of its own")
    parser.add_argument("--name", default="simulation", help="what the databases are called")
    return parser.parse_args()


@contextmanager
def server(given: str | None) -> Iterator[str]:
    if given is not None:
        yield given
        return
    home = Path(tempfile.mkdtemp(prefix="foliot-simulation-"))
    try:
        with PostgresServer(home) as running:
            yield running.dsn
    finally:
        shutil.rmtree(home.joinpath("postgres").resolve(), ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


def main() -> None:
    given = read()
    seeds = [given.seed] if given.seed is not None else list(range(given.first, given.first + given.seeds))
    tally, began = Tally(), time.monotonic()
    told = began
    with server(given.server) as dsn:
        for each in campaign(dsn, seeds, given.mode, min(given.processes, len(seeds)), given.name):
            tally.add(each)
            if each.failures:
                say(f"seed {each.seed} ({each.mode}): {each.failures[0]}")
                say(f"  its story is in {keep_story(given.stories, each)}; again: make simulate SEED={each.seed}")
                if given.stop:
                    break
            if time.monotonic() - told > PROGRESS:
                told, done = time.monotonic(), tally.seeds.total()
                say(f"{told - began:5.0f} s: {done:,} of {len(seeds):,} seeds, {len(tally.failed)} failed")
    seconds = time.monotonic() - began
    for path, times in tally.rare.items():
        say(f"{path}: {times:,}")
    say(f"fingerprint: {tally.fingerprint}")
    if len(seeds) >= SEEDS:
        say(f"the report is in {write(tally, seeds, seconds)}")
    incomplete = tally.never if len(seeds) >= ENOUGH else []
    for path in incomplete:
        say(f"never walked: {path}")
    say(tally.line())
    sys.exit(1 if tally.failed or incomplete else 0)


if __name__ == "__main__":
    main()
