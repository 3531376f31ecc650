"""`foliot bench`: how fast this machine runs Foliot, beside what its database could do at best."""

import asyncio
from typing import Any

import click

from foliot.bench.bed import Bed, server
from foliot.bench.measure import SECTIONS, Bench
from foliot.cli.output import as_json, say, wants_json


@click.command()
@click.option("--seconds", type=click.FloatRange(0.5, 600), default=8.0, show_default=True, help="Per measurement.")
@click.option("--only", "sections", multiple=True, type=click.Choice(SECTIONS), help="Measure only this.")
@wants_json
def bench(seconds: float, sections: tuple[str, ...], json: bool) -> None:
    """Measure throughput, latency and lateness on a database of its own.

    The raw floor is the same SQL in a bare loop on the same server, tuned first: what nothing above it could beat.
    """
    results = asyncio.run(_run(seconds, sections or SECTIONS))
    if json:
        as_json(results)
    else:
        _show(results)


async def _run(seconds: float, sections: tuple[str, ...]) -> dict[str, Any]:
    with server() as running:
        async with Bed.made(running.dsn) as bed:
            return await Bench(bed, seconds, lambda text: click.echo(text, err=True)).run(sections)


def _show(results: dict[str, Any]) -> None:
    floor = results["floor"]
    if floor["settings"]:
        say(f"\n{'':12}{'Foliot':>12}{'raw floor':>12}{'ratio':>8}   floor's best settings")
    for name in ("enqueue", "drain", "sustained"):
        if name in results:
            best = floor["settings"][name]
            ratio = results[name] / floor[name]
            say(
                f"{name:12}{results[name]:>10,}/s{floor[name]:>10,}/s{ratio:>8.2f}"
                f"   batch {best['batch']:,}, {best['connections']} connections"
            )
    if "walBytesPerRun" in results:
        say(f"\nWAL          {results['walBytesPerRun']:,} bytes per run")
    for name, title in (("latencyMs", "start latency at 200/s"), ("latenessMs", "lateness, 10,000 cron jobs")):
        if name in results:
            say(f"{title}: " + ", ".join(f"{which} {value:g} ms" for which, value in results[name].items()))
    if results["runsSubmitted"]:
        say(f"checked: {results['historyRows']:,} rows of history for {results['runsSubmitted']:,} runs submitted")
