"""`python -m chaos`: break everything for a while, then prove that nothing was lost. The last line says it all."""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop

from chaos import report
from chaos.check.recovery import too_slow
from chaos.crashes import fell_over
from chaos.ending import cancel_once
from chaos.nemesis import Strike
from chaos.published import commit, folder_for
from chaos.records import load
from chaos.run import Done, Options, run
from chaos.verdict import Verdict, check

ENOUGH = 600.0
"""Seconds from which on every possible fault and every rare path must have been seen: only such a run is a proof."""
PLENTY = 200_000
"""Acknowledged runs that a proof has at least."""
REPORT = "report"
UNJUDGED = 0.01
"""The share of jobs that may go unjudged in a proof."""


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - its output


def complaints(verdict: Verdict, done: Done) -> list[str]:
    """What makes a run prove less than it should, or less than we promise, though nothing was violated."""
    recovery: dict[str, dict[str, Any]] = verdict.measures["L2"]["promised"]
    quiet = [f"never walked: {path}" for path, times in verdict.rare.items() if not times]
    unseen = [f"never measured: {name}" for name, each in recovery.items() if not each["cases"]]
    late = [f"too slow: {each}" for each in too_slow(recovery)]
    share = verdict.unjudged / max(verdict.jobs, 1)
    unsure = [f"not judged: {verdict.unjudged} of {verdict.jobs} jobs"] if share > UNJUDGED else []
    few = [f"too few: {done.acknowledged:,} acknowledged of {PLENTY:,}"] if done.acknowledged < PLENTY else []
    return [*quiet, *unseen, *late, *unsure, *few, *(f"never happened: {kind}" for kind in done.unused)]


def clear(folder: Path) -> None:
    """Remove the records; a report among them stays."""
    for each in folder.iterdir():
        if each.is_dir() and each.name != REPORT:
            shutil.rmtree(each, ignore_errors=True)
        elif not each.is_dir():
            each.unlink()
    with suppress(OSError):
        folder.rmdir()


def again(given: argparse.Namespace, seconds: float, seed: int) -> str:
    """The command that repeats this run."""
    more = [f"--rate {given.rate:g}"] if given.rate else []
    more += ["--guard"] if given.guard else []
    more += [f"--only {each}" for each in given.only or []]
    return f"make chaos SECONDS={seconds:.0f} SEED={seed}" + (f' ARGS="{" ".join(more)}"' if more else "")


def read() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=ENOUGH)
    parser.add_argument("--hours", type=float, help="instead of --seconds")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--rate", type=float, help="runs a second that clients hand in at most")
    parser.add_argument("--guard", action="store_true", help="let the ledger refuse zombies")
    parser.add_argument(
        "--report", type=Path, help="folder for the report; docs/proof/chaos-COMMIT if it is long enough"
    )
    parser.add_argument("--evidence", type=Path, help="keep the records in this folder")
    parser.add_argument("--only", action="append", metavar="KIND:TARGET", help="just these faults, once, in order")
    return parser.parse_args()


async def undisturbed(options: Options, tell: Callable[[str], None] = say) -> Done:
    """Run to the end; told to stop, take everything down first that was put up."""
    cancel_once()
    return await run(options, tell)


def main() -> None:
    given = read()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    seconds = given.hours * 3_600 if given.hours else given.seconds
    only = [Strike(*each.split(":")) for each in given.only] if given.only else None
    say(f"chaos: seed {seed}, {seconds:.0f} s")
    folder = given.evidence or Path(tempfile.mkdtemp(prefix="foliot-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    options = Options(seed=seed, seconds=seconds, folder=folder, rate=given.rate, guard=given.guard, only=only)
    try:
        done = uvloop.run(undisturbed(options))
    except asyncio.CancelledError:
        say("chaos: stopped before its end")
        sys.exit(130)
    sys.exit(conclude(given, options, done))


def conclude(given: argparse.Namespace, options: Options, done: Done) -> int:
    """Judge what the run has left, publish it, and say in the last line how it went; 0 if it went as it must."""
    folder, seconds, seed = options.folder, options.seconds, options.seed
    began = time.monotonic()
    evidence = load(folder)
    verdict = check(evidence)
    found, picture = report.make(evidence, done, verdict, again(given, seconds, seed), time.monotonic() - began)
    is_proof = seconds >= ENOUGH
    place = given.report or (folder_for("chaos") if is_proof and options.only is None else folder / REPORT)
    report.write(place, found, picture, verdict)
    missing = complaints(verdict, done)
    for each in (*verdict.stories(commit()), *missing):
        say(each)
    fallen = fell_over(folder)
    for each in fallen:
        say(f"fell over by itself: {each}, see its log")
    failed = verdict.violations > 0 or bool(fallen) or (is_proof and bool(missing))
    if failed or given.evidence:
        say(f"the evidence is in {folder}")
    else:
        clear(folder)
    say(f"the report is in {place}")
    if not is_proof:
        say(f"this is no proof: that takes {ENOUGH:.0f} s, and nothing may be lacking")
    faults = len(evidence.faults)
    say(f"chaos: {done.acknowledged} acknowledged, {verdict.violations} violations, seed {seed}, {faults} faults")
    return 1 if failed else 0


if __name__ == "__main__":
    main()
