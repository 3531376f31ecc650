"""`foliot job occurrences` and `foliot gaps`: what became of every fire time."""

from typing import Any

import click

from foliot.cli.naming import job_argument
from foliot.cli.output import Column, as_json, say, table, wants_json
from foliot.sdk.client import Foliot

_OCCURRENCES = (
    Column("at", "FIRES (UTC)"),
    Column("status", "STATUS"),
    Column("runStatus", "RUN STATUS"),
    Column("runId", "RUN", optional=True),
    Column("reason", "WHY", shrinks=True),
)
_GAPS = (
    Column("first", "FIRST (UTC)"),
    Column("last", "LAST (UTC)"),
    Column("instants", "FIRES"),
    Column("jobs", "JOBS"),
    Column("name", "FOR EXAMPLE", shrinks=True),
    Column("jobId", "JOB", optional=True),
)


@click.command("occurrences")
@job_argument
@click.option("--since", help="From this instant on instead of for 30 days.")
@click.option("--until", help="Up to this instant instead of now; later ones are expected.")
@click.option("--status", help="fired, skipped, moved, missed, due, expected or unaccounted.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def occurrences(job_id: str, json: bool, **query: Any) -> None:
    """Show every fire time of a job and what became of it."""
    found = Foliot().list_occurrences(job_id, **query)
    if json:
        as_json(list(found))
        return
    table(list(found), _OCCURRENCES, empty="no such fire times")
    if found.next_cursor:
        say(f"… the newest {len(found)}; --limit shows up to 500, --until goes further back")


@click.command()
@click.option("--since", help="From this instant on instead of for 30 days.")
@click.option("--until", help="Up to this instant.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def gaps(json: bool, **query: Any) -> None:
    """Show fire times that jobs went without because they came up late."""
    found = Foliot().list_gaps(**query)
    if json:
        as_json(list(found))
        return
    table(list(found), _GAPS, empty="no gaps: every fire time was fired, or skipped for a reason of the job's own")
    if found.next_cursor:
        say(f"… the newest {len(found)}; --limit shows up to 500, --until goes further back")
