"""`foliot run …`: look at runs and steer them through the API."""

from typing import Any

import click

from foliot.cli.explain import explain_run
from foliot.cli.graphs import graph
from foliot.cli.naming import JOB, run_argument
from foliot.cli.output import Column, as_json, instant, record, say, table, wants_json
from foliot.cli.past import transitions
from foliot.cli.starting import submit
from foliot.sdk.client import Foliot

_COLUMNS = (
    Column("runId", "RUN"),
    Column("handler", "HANDLER", shrinks=True),
    Column("standing", "STATUS"),
    Column("attempts", "TRIES"),
    Column("scheduledAt", "SCHEDULED (UTC)"),
    Column("finishedAt", "FINISHED (UTC)", optional=True),
    Column("jobId", "JOB", optional=True),
)
_ATTEMPTS = (
    Column("attempt", "TRY"),
    Column("status", "STATUS"),
    Column("startedAt", "STARTED (UTC)"),
    Column("finishedAt", "FINISHED (UTC)"),
    Column("errorMessage", "ERROR", shrinks=True),
)
_PROGRESS = Column("progress", "PROGRESS", shrinks=True)
_LATE = Column("late", "LATE RESULT")


@click.group()
def run() -> None:
    """Single executions, of jobs and ad hoc."""


run.add_command(submit)
run.add_command(graph)
run.add_command(transitions)
run.add_command(explain_run)


@run.command("list")
@click.option("--status", help="pending, running, completed, failed, cancelled, skipped or missed.")
@click.option("--state", help="Finer: scheduled, ready, blocked, running, succeeded, dead, discarded, …")
@click.option("--job", metavar="JOB", type=JOB, help="Only runs of this job.")
@click.option("--text", help="Only with this text in handler, address or error.")
@click.option("--since", metavar="INSTANT", help="Only runs accepted at or after this instant.")
@click.option("--until", metavar="INSTANT", help="Only runs accepted before this instant.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def list_runs(json: bool, **query: Any) -> None:
    """List runs, newest first."""
    found = Foliot().list_runs(**query)
    rows = [each.values for each in found]
    if json:
        as_json(rows)
        return
    filtered = any(value is not None for name, value in query.items() if name != "limit")
    shown = [{**row, "standing": _standing(row)} for row in rows]
    table(shown, _COLUMNS, empty="no such runs" if filtered else "no runs yet")
    if found.next_cursor:
        say(f"… the newest {len(rows)}; --limit shows up to 500")


def _standing(row: dict[str, Any]) -> str:
    """What is pending waits for its time, for a worker or for something else: that is worth a word of its own."""
    return str(row["state"] if row["status"] == "pending" else row["status"])


@run.command("get")
@run_argument
@wants_json
def get(run_id: str, json: bool) -> None:
    """Show a run and its attempts."""
    client = Foliot()
    found, attempts = client.get_run(run_id).values, list(client.list_attempts(run_id))
    if json:
        as_json({**found, "executions": attempts})
        return
    record({**found, "progress": _progress(found["progress"])})
    say("")
    shown = {_PROGRESS: "progress", _LATE: "lateResult"}
    more = [column for column, field in shown.items() if any(each[field] for each in attempts)]
    rows = [
        {**each, "progress": _progress(each["progress"]), "late": (each["lateResult"] or {}).get("status")}
        for each in attempts
    ]
    table(rows, (*_ATTEMPTS, *more), empty="not tried yet")


def _progress(said: dict[str, Any] | None) -> str | None:
    """`49 % (98 of 200): row 98`"""
    if said is None:
        return None
    share = "" if said["fraction"] is None else f"{said['fraction']:.0%}".replace("%", " %")
    of = "" if said["total"] is None else f" of {said['total']:g}"
    count = "" if said["done"] is None else f"({said['done']:g}{of})"
    told = " ".join(part for part in (share, count) if part)
    return ": ".join(part for part in (told, said["message"]) if part)


@run.command("retry")
@run_argument
@wants_json
def retry(run_id: str, json: bool) -> None:
    """Let a run that has used its attempts go on."""
    found = Foliot().retry_run(run_id)
    if json:
        as_json(found.values)
    else:
        say(f"{found.id} {found.status}")


@run.command("cancel")
@run_argument
@wants_json
def cancel(run_id: str, json: bool) -> None:
    """End a run: at once if it waits, soon if a worker has it. It is not tried again."""
    found = Foliot().cancel_run(run_id)
    if json:
        as_json(found.values)
    elif found.stops_by:
        say(f"{found.id} {found.status}: asked to stop, over by {instant(found.values['stopsBy'])} UTC at the latest")
    else:
        say(f"{found.id} {found.status}" + ("" if found.status == "cancelled" else ": it was over before"))
