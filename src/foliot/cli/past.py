"""`foliot job versions` and `foliot run transitions`: what a job was before, and what happened to a run."""

import click

from foliot.cli.difference import changes, show_fields
from foliot.cli.naming import job_argument, run_argument
from foliot.cli.output import Column, as_json, instant, say, table, wants_json
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
    found = Foliot().list_versions(job_id, limit=limit)
    if json:
        as_json(list(found))
        return
    befores = [*found[1:], None]
    for version, before in zip(found, befores, strict=True):
        say(f"version {version['version']}, since {instant(version['since'])} UTC")
        if before is not None:
            show_fields(changes(before["definition"], version["definition"]))
    if found.next_cursor:
        say(f"… the newest {len(found)}; --limit shows up to 500")


@click.command("transitions")
@run_argument
@_limit
@wants_json
def transitions(run_id: str, limit: int, json: bool) -> None:
    """Show what happened to a run, step by step, and the state that each step left it in."""
    found = Foliot().list_transitions(run_id, limit=limit)
    if json:
        as_json(list(found))
        return
    table(list(found), _TRANSITIONS, empty="nothing is on record any more")
    if found.next_cursor:
        say(f"… {len(found)} of them; --limit shows up to 500")
