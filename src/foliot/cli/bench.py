"""`foliot bench`: how fast this machine runs Foliot, beside what its database could do at best."""

import asyncio
import os
import time
from typing import Any, Final

import click

from foliot.bench.bed import Bed, server
from foliot.bench.machine import commit, describe_machine, proofs
from foliot.bench.measure import SECTIONS, Bench
from foliot.bench.report import RATES, is_noisy, publish
from foliot.cli.output import as_json, say, wants_json

FULL: Final = 8.0
"""Seconds per measurement from which on a report of all sections is published."""


@click.command()
@click.option("--seconds", type=click.FloatRange(0.5, 600), default=FULL, show_default=True, help="Per measurement.")
@click.option("--only", "sections", multiple=True, type=click.Choice(SECTIONS), help="Measure only this.")
@wants_json
def bench(seconds: float, sections: tuple[str, ...], json: bool) -> None:
    """Measure throughput, latency and lateness on a database of its own.

    The raw floor is the same SQL in a bare loop on the same server, tuned first: what nothing above it could beat.
    In a checkout, a run of all sections at full length writes its report to docs/proof.
    """
    found = asyncio.run(_run(seconds, sections or SECTIONS))
    if json:
        as_json(found["results"])
    else:
        _show(found["results"])
    folder = proofs()
    if folder is not None and seconds >= FULL and set(sections or SECTIONS) == set(SECTIONS):
        folder /= f"bench-{commit()}"
        publish(folder, found)
        click.echo(f"written to {folder}", err=True)


async def _run(seconds: float, sections: tuple[str, ...]) -> dict[str, Any]:
    load, began = os.getloadavg()[0], time.monotonic()
    with server() as running:
        async with Bed.made(running.dsn) as bed:
            results = await Bench(bed, seconds, lambda text: click.echo(text, err=True)).run(sections)
            return {
                "machine": describe_machine(),
                "postgres": await bed.value("SHOW server_version"),
                "loadBefore": load,
                "minutes": (time.monotonic() - began) / 60,
                "seconds": seconds,
                "results": results,
            }


def _show(results: dict[str, Any]) -> None:
    floor = results["floor"]
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
    for name, title in (("latencyMs", "start latency at 200/s"), ("latenessMs", "lateness, 10,000 cron jobs")):
        if name in results:
            say(f"{title}: " + ", ".join(f"{which} {value:g} ms" for which, value in results[name].items()))
    if results["runsSubmitted"]:
        say(f"checked: {results['historyRows']:,} rows of history for {results['runsSubmitted']:,} runs submitted")


def _doubt(results: dict[str, Any], name: str) -> str:
    return "; noisy, the ratio says little" if is_noisy(results["repeats"][name]) else ""
