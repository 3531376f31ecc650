"""`python -m chaos.simulation`: many seeds in virtual time, over a real database. The last line says it all."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from chaos.kept import Kept
from chaos.simulation.campaign import Report, Tally, campaign, keep_story
from chaos.simulation.mode import Mode, mode_of
from chaos.simulation.report import write
from foliot.kit.postgres import PostgresServer

SEEDS: Final = 10_000
ENOUGH: Final = 1_000
"""Seeds from which on every rare path must have been walked."""
PROGRESS: Final = 10.0
_SERVER: Final = {"max_connections": "400"}
"""Each process keeps as many connections as its busiest seed needed."""
FOLDER: Final = Path(tempfile.gettempdir()) / "foliot-simulation"


class Enough(BaseException):
    """Somebody wants us to end: not an error, and nothing below may take it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - its output


def read() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--every", type=int, default=1, help="how far one is from the next")
    parser.add_argument("--seed", type=int, help="just this one, in the mode that it had")
    parser.add_argument("--mode", type=Mode, choices=list(Mode), help="all seeds in this one instead of both")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--core", type=int, default=0, help="the processor on which the first of them keeps")
    parser.add_argument("--stop", action="store_true", help="at the first seed that fails")
    parser.add_argument("--stories", type=Path, default=FOLDER)
    parser.add_argument(
        "--kept",
        type=Path,
        nargs="?",
        const=FOLDER,
        metavar="FOLDER",
        help="go on with what was done before with the same code, and add to it",
    )
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
        with PostgresServer(home, settings=_SERVER) as running:
            yield running.dsn
    finally:
        shutil.rmtree(home.joinpath("postgres").resolve(), ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


def main() -> None:
    given = read()
    behind = given.first + given.seeds * given.every
    seeds = [given.seed] if given.seed is not None else list(range(given.first, behind, given.every))
    tally = Tally()
    _heed(_enough)
    try:
        with closing(known_and_new(given, seeds)) as reports:
            for each in reports:
                tally.add(each)
                if each.failures:
                    say(f"seed {each.seed} ({each.mode}): {each.failures[0]}")
                    say(f"  its story is in {keep_story(given.stories, each)}; again: make simulate SEED={each.seed}")
                    if given.stop:
                        break
    except Enough as enough:
        say(f"{tally.line()}, {len(seeds) - tally.seeds.total():,} to go")
        sys.exit(128 + enough.number)
    conclude(tally, seeds)


def _enough(number: int, _: object) -> NoReturn:
    _heed(signal.SIG_IGN)  # there is a server to be stopped yet
    raise Enough(number)


def _heed(handler: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def known_and_new(given: argparse.Namespace, seeds: list[int]) -> Generator[Report]:
    """What is kept of these seeds, and then the others as they are done."""
    if given.kept is None:
        yield from fresh(given, seeds)
        return
    with Kept(given.kept, Report) as kept:
        known = wanted(kept.before, seeds, given.mode)
        if known:
            say(f"{len(known):,} of {len(seeds):,} seeds were done before: {kept.path}")
        yield from known
        done = {each.seed for each in known}
        for each in fresh(given, [seed for seed in seeds if seed not in done]):
            kept.add(each)
            yield each


def wanted(kept: list[Report], seeds: list[int], mode: Mode | None) -> list[Report]:
    """What is known of these seeds, if they were simulated in the mode that they are to be."""
    asked = {(seed, mode_of(seed, mode)) for seed in seeds}
    return list({each.seed: each for each in kept if (each.seed, each.mode) in asked}.values())


def fresh(given: argparse.Namespace, seeds: list[int]) -> Iterator[Report]:
    if not seeds:
        return
    began = told = time.monotonic()
    with server(given.server) as dsn:
        reports = campaign(dsn, seeds, given.mode, min(given.processes, len(seeds)), given.name, given.core)
        for number, each in enumerate(reports, 1):
            yield each
            if time.monotonic() - told > PROGRESS:
                told = time.monotonic()
                say(f"{told - began:5.0f} s: {number:,} of {len(seeds):,} seeds")


def conclude(tally: Tally, seeds: list[int]) -> NoReturn:
    for path, times in tally.rare.items():
        say(f"{path}: {times:,}")
    say(f"fingerprint: {tally.fingerprint}")
    if len(seeds) >= SEEDS:
        say(f"the report is in {write(tally, seeds)}")
    incomplete = tally.never if len(seeds) >= ENOUGH else []
    for path in incomplete:
        say(f"never walked: {path}")
    say(tally.line())
    sys.exit(1 if tally.failed or incomplete else 0)


if __name__ == "__main__":
    main()
