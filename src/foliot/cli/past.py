"""`foliot job versions` and `foliot run transitions`: what a job was before, and what happened to a run."""

from typing import Any

import click

from foliot.cli.difference import changes, show_fields
from foliot.cli.naming import job_argument, run_argument
from foliot.cli.output import Column, as_json, instant, say, table, wants_json
from foliot.sdk import calls
from foliot.sdk.client import Foliot

_TRANSITIONS = (
    Column("at", "AT (UTC)"),
    Column("event", "EVENT"),
    Column("state", "STATE"),
    Column("attempt", "TRY"),
    Column("errorMessage", "ERROR", shrinks=True),
    Column("workerId", "WORKER", optional=True),
)
_limit = click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")


@click.command("versions")
@job_argument
@_limit
@wants_json
def versions(job_id: str, limit: int, json: bool) -> None:
    """Show the definitions that a job has had, newest first, and what each changed of the one before."""
    page = Foliot().request(calls.get("jobs", job_id, "versions", limit=limit))
    if json:
        as_json(page["items"])
        return
    befores = [*page["items"][1:], None]
    for version, before in zip(page["items"], befores, strict=True):
        say(f"version {version['version']}, since {instant(version['since'])} UTC")
        if before is not None:
            show_fields(changes(before["definition"], version["definition"]))
    if page["nextCursor"]:
        say(f"… the newest {len(page['items'])}; --limit shows up to 500")


@click.command("transitions")
@run_argument
@_limit
@wants_json
def transitions(run_id: str, limit: int, json: bool) -> None:
    """Show what happened to a run, step by step, and the state that each step left it in."""
    page: dict[str, Any] = Foliot().request(calls.get("runs", run_id, "transitions", limit=limit))
    if json:
        as_json(page["items"])
        return
    table(page["items"], _TRANSITIONS, empty="nothing is on record any more")
    if page["nextCursor"]:
        say(f"… {len(page['items'])} of them; --limit shows up to 500")
