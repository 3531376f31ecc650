"""One chaos run of a build of Foliot, in a process of its own: `python -m chaos.round MUTANT SEED [SOURCE]`.

The last line that it says is what came of it.
"""

import asyncio
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

from chaos.__main__ import undisturbed
from chaos.check import Finding
from chaos.crashes import crashes
from chaos.glance import Caught
from chaos.mutations import MUTANTS, Mutant
from chaos.orphan import leave_with_parent
from chaos.records import load
from chaos.run import Options
from chaos.verdict import check

PATIENCE: Final = 60.0
"""Seconds: longer than any retry that the driver asks for."""
BROKEN_OFF: Final = 130


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One chaos run of a build: what the S-checks found, or why it says nothing."""

    seed: int
    seconds: float
    acknowledged: int = 0
    faults: int = 0
    found: dict[str, int] = {}
    first: str = ""
    """The first violation, in words."""
    void: str = ""
    early: bool = False
    """It was broken off at a violation that nothing to come could have taken back."""
    processor: float = 0.0
    """Seconds of processor time that all its processes used together."""

    @property
    def checks(self) -> str:
        return ", ".join(f"{name} ({count})" for name, count in self.found.items())

    @property
    def told(self) -> str:
        return self.checks or self.void or "nothing"


def run_round(mutant: Mutant, source: Path | None, seed: int) -> Round:
    """Put up a whole system from `source` (none: the unmutated code), strike as this mutant needs it, check all."""
    folder = Path(tempfile.mkdtemp(prefix="foliot-mutant-"))
    options = Options(
        seed=seed,
        seconds=mutant.seconds,
        folder=folder,
        rate=mutant.rate,
        bursts=mutant.bursts,
        source=source,
        slowest=mutant.slowest,
        odd=mutant.odd,
        chores=mutant.chores,
        patience=PATIENCE,
        impatient=True,
    )
    began = time.monotonic()
    try:
        facts = _judged(options)
        if broken := crashes(folder):
            facts |= {"void": broken, "found": {}}
    except (TimeoutError, OSError, RuntimeError, ExceptionGroup) as error:
        facts = {"void": f"did not run: {error!r}"}
    if facts.get("void") or (facts["found"] and source is None):  # that a mutant is found out is as it should be
        _tell(f"  {mutant.name}: the evidence is in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return Round(seed=seed, seconds=time.monotonic() - began, processor=_processor_time(), **facts)


def _judged(options: Options) -> dict[str, Any]:
    try:
        done = uvloop.run(undisturbed(options, lambda _: None))
    except Caught as caught:
        counts = Counter(each.check for each in caught.findings)
        return {"found": dict(counts), "first": first(caught.findings), "early": True}
    evidence = load(options.folder)
    verdict = check(evidence)
    return {
        "found": {name: n for name, n in verdict.counts.items() if n and name.startswith("S")},
        "first": first([told.finding for told in verdict.findings if told.finding.violation]),
        "acknowledged": done.acknowledged,
        "faults": len(evidence.faults),
    }


def first(findings: Sequence[Finding]) -> str:
    """The first of them, in words."""
    if not findings:
        return ""
    found = min(findings, key=lambda each: each.at or float("inf"))
    return f"{found.check} {found.rule}: {' '.join(filter(None, (found.run, found.job)))} {found.message}"


def _processor_time() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - its output


def main(name: str, seed: str, source: str | None = None) -> None:
    leave_with_parent(partial(os.kill, os.getpid(), signal.SIGTERM))
    mutant = next(each for each in MUTANTS if each.name == name)
    try:
        done = run_round(mutant, None if source is None else Path(source), int(seed))
    except asyncio.CancelledError:
        sys.exit(BROKEN_OFF)
    sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
