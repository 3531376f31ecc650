"""`foliot schedule …`: look at recurrences before a job has them."""

from typing import Any

import click

from foliot.cli.naming import CALENDAR, JOB
from foliot.cli.output import Column, as_json, table, wants_json
from foliot.sdk.client import Foliot
from foliot.sdk.records import Fires

_COLUMNS = (Column("at", "FIRES (UTC)"), Column("local", "LOCAL"), Column("note", "", shrinks=True))
_MARK = Column("mark", "")
_MARKS = {"added": "+", "removed": "-"}
_NOTES = {"gap": "clocks go forward", "fold": "clocks go back", None: ""}


@click.group()
def schedule() -> None:
    """When things fire."""


@schedule.command("preview")
@click.option("--cron", "cron_expression", help='For example "0 9 * * MON-FRI".')
@click.option("--timezone", help="IANA zone of the cron expression, for example Europe/Berlin.")
@click.option("--gap", type=click.Choice(["end", "skip"]), help="A time of day that the clocks skip: run late, or not.")
@click.option("--fold", type=click.Choice(["once", "twice"]), help="A time of day that comes twice.")
@click.option("--every", help="ISO 8601 duration or seconds, for example PT90S; or R5/START/PT90S.")
@click.option("--rrule", help='RFC 5545, for example "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9".')
@click.option("--when", help='In plain words, for example "every weekday at 9:00".')
@click.option("--at", "schedule_at", help="No fire before this instant; the anchor of --every.")
@click.option("--calendar", type=CALENDAR, help="Only when this calendar allows.")
@click.option(
    "--calendar-rule",
    type=click.Choice(["skip", "next", "previous", "nearest"]),
    help="What becomes of runs that the calendar does not allow.",
)
@click.option("--ends-at", help="No fire after this instant.")
@click.option("--max-runs", type=click.IntRange(1, 1_000_000_000), help="No more fires than this.")
@click.option("--job", metavar="JOB", type=JOB, help="Compare with this job's present schedule: what would change?")
@click.option("--key", help="Key of the job, which an H of --cron is hashed from.")
@click.option("--name", help="Name of the job; an H is hashed from it if there is no key.")
@click.option("--after", help="Fires after this instant instead of from now on.")
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="At most so many.")
@wants_json
def preview(json: bool, **timing: Any) -> None:
    """Show the next fires of a recurrence, and on which of those days the clocks change."""
    show(Foliot().preview(**{name: value for name, value in timing.items() if value is not None}), json=json)


def show(fires: Fires, *, json: bool) -> None:
    """Print fires one a line; those that an edit adds or removes are marked as in a diff."""
    if json:
        as_json(fires)
        return
    rows = [
        {**fire, "mark": _MARKS.get(fire.get("change", ""), ""), "note": _NOTES[fire["transition"]]} for fire in fires
    ]
    is_diff = any("change" in fire for fire in fires)
    table(rows, (_MARK, *_COLUMNS) if is_diff else _COLUMNS, empty="it never fires again")
