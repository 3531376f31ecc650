"""How soon a run starts at a steady 200 a second, in turns with two bare commits, and what was about the slowest."""

import statistics
from operator import itemgetter
from typing import Any, Final

from foliot.bench.bed import APP, Bed
from foliot.bench.commits import two_commits
from foliot.bench.pulse import Pulse
from foliot.bench.sections import FULL, Say

RATE: Final = 200.0
SECONDS: Final = 30.0
"""Of each repeat of full length, without its turns of bare commits: 6,000 runs, so that 60 are beyond the p99."""
TURNS: Final = 3
SLOWEST: Final = 10


async def measure_latency(bed: Bed, seconds: float, say: Say) -> dict[str, Any]:
    """One repeat: percentiles of both in ms, and the slowest runs, each with what happened at the same time."""
    turns, whole = (TURNS, max(SECONDS, seconds)) if seconds >= FULL else (1, max(seconds, 2.0))
    starts: list[tuple[float, float]] = []
    commits: list[float] = []
    await bed.wipe()
    async with bed.process("worker", APP), Pulse.taken(bed.dsn) as pulse:
        await bed.until_workers()
        for turn in range(1, turns + 1):
            say(f"latency: {RATE:g} runs a second, turn {turn} of {turns}, {whole / turns:g} s")
            starts += await _starts(bed, whole / turns)
            commits += await two_commits(bed.dsn, whole / turns, RATE)
    return {
        "latency": percentiles([began - sent for sent, began in starts], 50, 95, 99),
        "twoCommits": percentiles(commits, 50, 95, 99),
        "slowest": slowest(starts, pulse),
        "seconds": whole,
    }


async def _starts(bed: Bed, seconds: float) -> list[tuple[float, float]]:
    """Of each run, the call of submit and the first line of the handler."""
    bed.notes.unlink(missing_ok=True)
    made = await bed.tool("foliot.bench.produce", "trickle", seconds, RATE)
    await bed.until_noted(made["made"])
    return [(sent, began) for sent, _, began in bed.noted() if sent >= made["warm"]]


def slowest(starts: list[tuple[float, float]], pulse: Pulse) -> list[dict[str, Any]]:
    """In the order in which they came; `at` is in seconds from the first of all."""
    first = min(sent for sent, _ in starts)
    worst = sorted(starts, key=lambda start: start[0] - start[1])[:SLOWEST]
    told = [
        {"at": round(sent - first, 2), "ms": round(1_000 * (began - sent), 1), **pulse.around(sent, began)}
        for sent, began in worst
    ]
    return sorted(told, key=itemgetter("at"))


def percentiles(seconds: list[float], *wanted: int) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {f"p{percent}": round(cuts[percent - 1] * 1000, 2) for percent in wanted}
