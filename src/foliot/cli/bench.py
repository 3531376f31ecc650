"""`foliot bench`: how fast this machine runs Foliot, beside what its database could do at best."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from foliot.bench.bed import Bed, server
from foliot.bench.dispatch import LONG
from foliot.bench.dispatch import SECTIONS as DISPATCH
from foliot.bench.load import TEN_MILLION, Load
from foliot.bench.machine import commit, describe_machine, proofs
from foliot.bench.measure import SECTIONS as BESIDE_FLOOR
from foliot.bench.measure import Bench
from foliot.bench.report import BESIDE_FLOOR as RATES
from foliot.bench.report import is_noisy, publish, rate_rows, schedules_rows
from foliot.bench.schedules import measure_schedules
from foliot.bench.sections import FULL, measure_section
from foliot.bench.targets import DISPATCH as TARGETS
from foliot.bench.targets import Row, rows
from foliot.bench.template import usual_place
from foliot.cli.output import as_json, progress, say, wants_json

STEADY: Final = 60.0
"""Seconds of the steady load of schedules in a run of full length; a shorter run takes its own."""
SCHEDULES: Final = "schedules"
SECTIONS: Final = (*BESIDE_FLOOR, *DISPATCH, SCHEDULES)


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(0.5, 86_400),
    default=FULL,
    show_default=True,
    help="Per measurement; from 8 on, some take longer of themselves.",
)
@click.option(
    "--only",
    "sections",
    multiple=True,
    type=click.Choice([*SECTIONS, *LONG]),
    help="Measure only this. `soak` is measured only when asked for.",
)
@click.option(
    "--schedules",
    type=click.IntRange(1_000, 100_000_000),
    default=TEN_MILLION,
    show_default=True,
    help="Jobs in place in the section of that name: written once, about a kilobyte each, and kept for the next time.",
)
@click.option(
    "--burst",
    type=click.IntRange(1, 10_000_000),
    help="Jobs of one schedule that are due at one instant in that section; a hundredth of the others if not said.",
)
@wants_json
def bench(seconds: float, sections: tuple[str, ...], schedules: int, burst: int | None, json: bool) -> None:
    """Measure throughput, latency and lateness on a database of its own.

    The raw floor is the same SQL in a bare loop on the same server, tuned first: what nothing above it could beat.
    In a checkout, a run of all sections, or of one alone, writes its report to docs/proof if of full length.
    """
    try:
        found = asyncio.run(_run(seconds, sections or SECTIONS, Load(schedules, burst)))
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None
    if json:
        as_json(found["results"])
    else:
        _show(found["results"])
    folder, name = proofs(), _title(sections or SECTIONS)
    if folder is not None and name is not None and seconds >= FULL and schedules >= TEN_MILLION:
        folder /= f"{name}-{commit()}"
        publish(folder, found)
        click.echo(f"written to {folder}", err=True)


def _title(sections: tuple[str, ...]) -> str | None:
    """What a report of these is called; none if it is not worth keeping: some of many, chosen for the day."""
    if set(sections) == set(SECTIONS):
        return "bench"
    alone = sections[0] if len(sections) == 1 else None
    return alone if alone in LONG else alone and f"bench-{alone}"


async def _run(seconds: float, sections: tuple[str, ...], jobs: Load) -> dict[str, Any]:
    _heed_the_end()
    load, began = os.getloadavg()[0], time.monotonic()
    found: dict[str, Any] = {}
    if any(name != SCHEDULES for name in sections):
        with server() as running:
            async with Bed.made(running.dsn) as bed:
                if beside := tuple(name for name in sections if name in BESIDE_FLOOR):
                    found = await Bench(bed, seconds, _tell).run(beside)
                chosen = [each for name, each in (DISPATCH | LONG).items() if name in sections]
                found["dispatch"] = {each.name: await measure_section(each, bed, seconds, _tell) for each in chosen}
                found["postgres"] = await bed.value("SHOW server_version")
    if SCHEDULES in sections:
        steady = STEADY if seconds >= FULL else seconds
        found |= await measure_schedules(jobs, usual_place(), steady, _tell, _bar)
    return {
        "machine": describe_machine(),
        "postgres": found.pop("postgres"),
        "loadBefore": load,
        "minutes": (time.monotonic() - began) / 60,
        "seconds": seconds,
        "results": found,
    }


def _heed_the_end() -> None:
    """SIGTERM ends the server and the processes of the bench as well, as Ctrl-C does."""
    if (task := asyncio.current_task()) is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _tell(text: str) -> None:
    click.echo(text, err=True)


@contextmanager
def _bar(jobs: int) -> Iterator[Callable[[int], None]]:
    """How far the jobs are written, and how long it will take yet."""
    with progress(jobs, "writing jobs") as advance:
        yield advance


def _show(results: dict[str, Any]) -> None:
    floor = results.get("floor", {"settings": {}})
    if floor["settings"]:
        say(f"\n{'':12}{'Foliot':>12}{'raw floor':>12}{'ratio':>8}{'from, to':>14}   floor's best settings")
    for name in RATES:
        if name in results:
            best, ratio = floor["settings"][name], results["ratio"][name]
            say(
                f"{name:12}{results[name]:>10,}/s{floor[name]:>10,}/s{ratio['median']:>8.2f}"
                f"{ratio['least']:>8.2f}, {ratio['most']:.2f}   batch {best['batch']:,},"
                f" {best['connections']} connections{_doubt(results, name)}"
            )
    if "walBytesPerRun" in results:
        say(f"\nWAL          {results['walBytesPerRun']:,} bytes per run")
    titles = {
        "latencyMs": "start latency at 200/s",
        "twoCommitsMs": "two bare commits, one after the other",
        "latenessMs": "lateness, 10,000 cron jobs",
    }
    for name, title in titles.items():
        if name in results:
            say(f"{title}: " + ", ".join(f"{which} {value:g} ms" for which, value in results[name].items()))
    _show_rows("", rate_rows(results))
    for name, section in results.get("dispatch", {}).items():
        _show_section(name, section)
    if SCHEDULES in results:
        _show_schedules(results[SCHEDULES])
    if results.get("runsSubmitted"):
        say(f"checked: {results['historyRows']:,} rows of history for {results['runsSubmitted']:,} runs submitted")


def _show_section(name: str, found: dict[str, Any]) -> None:
    if "skipped" in found:
        say(f"\n{found['title']}: skipped, {found['skipped']}")
        return
    _show_rows(f"{found['title']}, {found['seconds']:g} s", rows(found, TARGETS[name]))
    if found["boundBy"]:
        say(f"what bounds it: {found['boundBy']}")


def _show_schedules(found: dict[str, Any]) -> None:
    title = f"{found['jobs']:,} jobs in place, {found['perSecond']:,} due a second for {found['seconds']:g} s"
    _show_rows(title, schedules_rows(found))
    if found["boundBy"]:
        say(f"what bounds it: {found['boundBy']}")


def _show_rows(title: str, told: Iterable[Row]) -> None:
    for number, (name, value, target, verdict, repeats) in enumerate(told):
        if number == 0:
            say(f"\n{title}".rstrip(" "))
        say(f"{name:58}{value:>14}{target:>20}  {verdict:16}{repeats}")


def _doubt(results: dict[str, Any], name: str) -> str:
    return "; noisy, the ratio says little" if is_noisy(results["repeats"][name]) else ""
