"""When a run has failed, and when it is a proof: one rule for its last lines, its exit code and its report."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from chaos.check.recovery import too_slow
from chaos.run import Done
from chaos.verdict import Verdict

ENOUGH: Final = 600.0
"""Seconds from which on every possible fault and every rare path must have been seen: only such a run is a proof."""
PLENTY: Final = 200_000
"""Acknowledged runs that a proof has at least."""
UNJUDGED: Final = 0.01
"""The share of jobs that may go unjudged in a proof."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    failures: list[str]
    """Why the run has failed, in words."""
    shortcomings: list[str]
    """Why it is no proof though it may have gone well: it is too short, or this machine cannot do everything."""

    @property
    def failed(self) -> bool:
        return bool(self.failures)

    @property
    def is_proof(self) -> bool:
        """Whether it is published, as what it is: one that failed too."""
        return not self.shortcomings


def result(verdict: Verdict, done: Done, fallen: Sequence[str], settings: Mapping[str, Any]) -> Result:
    """`fallen`: processes that ended by themselves; `settings`: of the run, as its records have them."""
    is_long = settings["seconds"] >= ENOUGH
    failures = [f"violations: {verdict.violations}"] if verdict.violations else []
    failures += [f"fell over by itself: {each}, see its log" for each in fallen]
    failures += complaints(verdict, done) if is_long else []
    short = [] if is_long else [f"that takes {ENOUGH:.0f} s, and then nothing may be lacking"]
    short += [] if settings.get("everything", True) else ["only some faults were asked for"]
    return Result(failures=failures, shortcomings=short + [f"not possible here: {kind}" for kind in done.lacking])


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
