"""`foliot queue …`: what waits where, and holding it back."""

from typing import Any

import click

from foliot.cli.naming import QUEUE
from foliot.cli.output import Column, as_json, instant, say, table, wants_json
from foliot.sdk.client import Foliot

_COLUMNS = (
    Column("name", "QUEUE", shrinks=True),
    Column("standing", "STATE"),
    Column("ready", "READY"),
    Column("running", "RUNNING"),
    Column("scheduled", "SCHEDULED"),
    Column("age", "OLDEST"),
    Column("workers", "WORKERS"),
    Column("rate", "RUNS/S", optional=True),
    Column("unserved", "WITHOUT A WORKER", shrinks=True, optional=True),
)


@click.group()
def queue() -> None:
    """What waits in which queue, and holding it back."""


@queue.command("list")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def list_queues(limit: int, json: bool) -> None:
    """List queues by name."""
    found = Foliot().queues(limit=limit)
    if json:
        as_json([each.values for each in found])
        return
    table([{**each.values, **_shown(each.values)} for each in found], _COLUMNS, empty="no queues yet")
    if found.next_cursor:
        say(f"… the first {len(found)}; --limit shows up to 500")


@queue.command("pause")
@click.argument("name", metavar="QUEUE", type=QUEUE)
@wants_json
def pause(name: str, json: bool) -> None:
    """Have no worker take or start anything of QUEUE until it is resumed; what runs goes on."""
    paused = Foliot().pause_queue(name)
    if json:
        as_json(paused.values)
    else:
        say(f"{name} is paused; nothing of it starts after {instant(paused.holds_by)} UTC, usually at once")
        say(f"go on with: foliot queue resume {name}")


@queue.command("resume")
@click.argument("name", metavar="QUEUE", type=QUEUE)
@wants_json
def resume(name: str, json: bool) -> None:
    """Let workers take QUEUE again."""
    resumed = Foliot().resume_queue(name)
    if json:
        as_json(resumed.values)
    else:
        say(f"{name} goes on: {resumed.ready:,} ready, {resumed.workers} worker{'' if resumed.workers == 1 else 's'}")


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    age = values["oldestAgeSeconds"] if values["ready"] else None
    return {
        "standing": "paused" if values["pausedAt"] else "open",
        "age": "-" if age is None else f"{age:.0f}s",
        "rate": f"{values['rate']:.1f}",
        "unserved": ", ".join(values["unserved"]) or "-",
    }
