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

import msgspec
import uvloop

from chaos import report
from chaos.crashes import fell_over
from chaos.ending import cancel_once
from chaos.nemesis import Strike
from chaos.published import folder_for
from chaos.records import load
from chaos.result import ENOUGH, result
from chaos.run import DONE, HEAD, Done, Options, run
from chaos.verdict import check

REPORT = "report"


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - its output


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
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="only judge the records that a run has left there")
    parser.add_argument("--only", action="append", metavar="KIND:TARGET", help="just these faults, once, in order")
    return parser.parse_args()


async def undisturbed(options: Options, tell: Callable[[str], None] = say) -> Done:
    """Run to the end; told to stop, take everything down first that was put up."""
    cancel_once()
    return await run(options, tell)


def main() -> None:
    given = read()
    if given.judge is not None:
        sys.exit(judge(given))
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    seconds = given.hours * 3_600 if given.hours else given.seconds
    only = [Strike(*each.split(":")) for each in given.only] if given.only else None
    folder = given.evidence or Path(tempfile.mkdtemp(prefix="foliot-chaos-"))
    if (folder / HEAD).exists():
        sys.exit(f"chaos: {folder} has the records of another run; name another folder, or judge them with --judge")
    say(f"chaos: seed {seed}, {seconds:.0f} s")
    folder.mkdir(parents=True, exist_ok=True)
    options = Options(
        seed=seed,
        seconds=seconds,
        folder=folder,
        rate=given.rate,
        guard=given.guard,
        only=only,
        command=again(given, seconds, seed),
    )
    try:
        done = uvloop.run(undisturbed(options))
    except asyncio.CancelledError:
        say("chaos: stopped before its end")
        sys.exit(130)
    sys.exit(conclude(given, folder, done))


def judge(given: argparse.Namespace) -> int:
    """Once more what `conclude` does, of a run whose records were kept."""
    try:
        done = msgspec.json.decode((given.judge / DONE).read_bytes(), type=Done)
    except FileNotFoundError as missing:
        say(f"chaos: no run has come to its end there: {missing.filename} is missing")
        return 2
    given.evidence = given.judge
    return conclude(given, given.judge, done)


def conclude(given: argparse.Namespace, folder: Path, done: Done) -> int:
    """Judge what the run has left, publish it, and say in the last line how it went; 0 if it went as it must."""
    began = time.monotonic()
    evidence = load(folder)
    verdict = check(evidence)
    judged_in = time.monotonic() - began
    came = result(verdict, done, fell_over(folder), evidence.settings)
    found, picture = report.make(evidence, done, verdict, came, judged_in)
    place = given.report or (folder_for("chaos", found["commit"]) if came.is_proof else folder / REPORT)
    report.write(place, found, picture, verdict)
    for each in (*verdict.stories(found["commit"]), *came.failures):
        say(each)
    if came.failed or given.evidence:
        say(f"the evidence is in {folder}")
    else:
        clear(folder)
    say(f"the report is in {place}")
    for each in came.shortcomings:
        say(f"this is no proof: {each}")
    counted = f"{done.acknowledged} acknowledged, {verdict.violations} violations"
    say(f"chaos: {counted}, seed {evidence.seed}, {len(evidence.faults)} faults")
    return 1 if came.failed else 0


if __name__ == "__main__":
    main()
