"""`python -m chaos.simulation`: many seeds in virtual time, over a real database. The last line says it all."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from chaos.simulation.campaign import Tally, campaign, keep_story
from chaos.simulation.run import Mode
from foliot.kit.postgres import PostgresServer

SEEDS: Final = 10_000
ENOUGH: Final = 1_000
"""Seeds from which on every rare path must have been walked."""
PROGRESS: Final = 10.0


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - its output


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m chaos.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--seed", type=int, help="just this one: again, and with its story")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--mode", type=Mode, choices=list(Mode), help="all seeds in this one instead of both")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--stories", type=Path, default=Path(tempfile.gettempdir()) / "foliot-simulation")
    given = parser.parse_args()
    seeds = [given.seed] if given.seed is not None else list(range(given.first, given.first + given.seeds))
    tally, began = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="foliot-simulation-") as home, PostgresServer(Path(home)) as server:
        told = began
        for each in campaign(server.dsn, seeds, given.mode, min(given.processes, len(seeds))):
            tally.add(each)
            if each.failures:
                say(f"seed {each.seed} ({each.mode}): {each.failures[0]}")
                say(f"  its story is in {keep_story(given.stories, each)}; again: make simulate SEED={each.seed}")
            if time.monotonic() - told > PROGRESS:
                told = time.monotonic()
                done = tally.seeds.total()
                say(f"{told - began:5.0f} s: {done:,} of {len(seeds):,} seeds, {len(tally.failed)} failed")
    for path, times in tally.rare.items():
        say(f"{path}: {times:,}")
    say(tally.line())
    incomplete = len(seeds) >= ENOUGH and bool(tally.never)
    if incomplete:
        say(f"never walked: {', '.join(tally.never)}")
    sys.exit(1 if tally.failed or incomplete else 0)


if __name__ == "__main__":
    main()
