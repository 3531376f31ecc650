"""`foliot run …`: look at runs through the API."""

from typing import Any

import click

from foliot.cli.output import as_json, record, say, table, wants_json
from foliot.sdk.client import Foliot

_COLUMNS = {
    "runId": "RUN",
    "jobId": "JOB",
    "handler": "HANDLER",
    "status": "STATUS",
    "attempts": "ATTEMPTS",
    "scheduledAt": "SCHEDULED",
    "finishedAt": "FINISHED",
}
_ATTEMPTS = {
    "attempt": "ATTEMPT",
    "status": "STATUS",
    "startedAt": "STARTED",
    "finishedAt": "FINISHED",
    "errorMessage": "ERROR",
}


@click.group()
def run() -> None:
    """Single executions, of jobs and ad hoc."""


@run.command("list")
@click.option("--status", help="pending, running, completed, failed, cancelled, skipped or missed.")
@click.option("--job", metavar="JOB")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@wants_json
def list_runs(json: bool, **query: Any) -> None:
    """List runs, newest first."""
    found = [each.values for each in Foliot().list_runs(**query)]
    if json:
        as_json(found)
    else:
        table(found, _COLUMNS, empty="no runs yet")


@run.command("get")
@click.argument("run_id", metavar="RUN")
@wants_json
def get(run_id: str, json: bool) -> None:
    """Show a run and its attempts."""
    client = Foliot()
    found, attempts = client.get_run(run_id).values, client.list_attempts(run_id)
    if json:
        as_json({**found, "executions": attempts})
        return
    record(found)
    say("")
    table(attempts, _ATTEMPTS, empty="not tried yet")
