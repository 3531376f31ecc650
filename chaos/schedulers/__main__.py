"""`python -m chaos.schedulers`: hurt three schedulers for a while, look at every instant. The last line says it all."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import uvloop

from chaos.ending import cancel_once
from chaos.published import folder_for
from chaos.schedulers import report
from chaos.schedulers.field import JUMP, NODES, field
from chaos.schedulers.judge import SECOND, Verdict, judge

ENOUGH: Final = 300.0
"""Seconds from which on a run is a proof."""
JOBS: Final = 1_000
"""Each fires once a second."""


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - its output


def read() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos.schedulers", description=__doc__)
    parser.add_argument("--seconds", type=float, default=ENOUGH)
    parser.add_argument("--jobs", type=int, default=JOBS, help="each fires once a second")
    parser.add_argument("--seed", type=int)
    parser.add_argument(
        "--report", type=Path, help="folder for the report; docs/proof/schedulers-COMMIT if it is long enough"
    )
    return parser.parse_args()


async def prove(folder: Path, seconds: float, jobs: int, seed: int) -> tuple[Verdict, dict[str, Any]]:
    """Run it; the verdict, and what was done."""
    cancel_once()
    began = time.monotonic()
    async with field(folder) as ready:
        await ready.plant(jobs)
        dice = random.Random(seed)  # noqa: S311 - guards nothing
        await ready.torment(seconds, dice, lambda what: say(f"{time.monotonic() - began:5.0f} s: {what}"))
        until = await ready.come_to_rest()
        say("all is fired; comparing every instant")
        ahead = JUMP * SECOND if ready.hurts["jump"] else 0
        found = await ready.jobs(), await ready.runs(), await ready.missed()
        verdict = judge(*found, until, ready.spells, NODES, ready.jumps, ahead)
        return verdict, {"hurts": dict(ready.hurts), "takeovers": await ready.takeovers()}


def main() -> None:
    given = read()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    say(f"schedulers: seed {seed}, {given.seconds:.0f} s, {given.jobs:,} fires a second")
    folder = Path(tempfile.mkdtemp(prefix="foliot-schedulers-logs-"))
    try:
        verdict, done = uvloop.run(prove(folder, given.seconds, given.jobs, seed))
    except asyncio.CancelledError:
        say("schedulers: stopped before its end")
        sys.exit(130)
    command = f"make schedulers SECONDS={given.seconds:.0f} SEED={seed}"
    about = {"command": command, "seed": seed, "seconds": given.seconds, "jobs": given.jobs}
    found = report.make(verdict, done["hurts"], done["takeovers"], about)
    place = given.report or (folder_for("schedulers") if given.seconds >= ENOUGH else folder)
    report.write(place, found)
    for what in ("lost", "doubled", "invented", "late", "early"):
        for job, at in getattr(verdict, what)[:5]:
            say(f"{what}: job {job}, instant {at / 1e6:.6f}")
    say(f"the report is in {place}, the schedulers' logs are in {folder}")
    say(
        f"schedulers: {verdict.expected} instants, {verdict.explained} explained, {verdict.violations} violations,"
        f" seed {seed}, {sum(done['hurts'].values())} hurts, p99 {verdict.percentile(0.99):.2f} s late"
    )
    sys.exit(1 if verdict.violations else 0)


if __name__ == "__main__":
    main()
