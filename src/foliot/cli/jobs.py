"""`foliot job …`: create, look at and steer jobs through the API."""

from typing import Any

import click

from foliot.cli.explain import explain_job
from foliot.cli.job_options import definition, given, losing, lost, timing_of
from foliot.cli.ledger import occurrences
from foliot.cli.naming import job_argument
from foliot.cli.operations import backfill
from foliot.cli.output import Column, as_json, confirm, instant, record, say, table, wants_json
from foliot.cli.past import versions
from foliot.cli.schedules import show
from foliot.cli.starting import tell, waiting
from foliot.sdk.client import Foliot

_COLUMNS = (
    Column("jobId", "JOB"),
    Column("name", "NAME", shrinks=True),
    Column("status", "STATUS"),
    Column("scheduleType", "TYPE"),
    Column("nextRunAt", "NEXT RUN (UTC)"),
    Column("lastStatus", "LAST RUN", optional=True),
    Column("key", "KEY", shrinks=True, optional=True),
)


@click.group()
def job() -> None:
    """Definitions of what to run, and when."""


job.add_command(backfill)
job.add_command(explain_job)


@job.command("create")
@click.argument("name")
@click.argument("handler")
@click.argument("arguments", nargs=-1, metavar="[ARGUMENTS]...")
@definition
@click.option("--key", help="Your own unique name for it; creating the same key twice is refused.")
@wants_json
def create(name: str, handler: str, arguments: tuple[str, ...], json: bool, **values: Any) -> None:
    """Create a job NAME that calls HANDLER: an http(s) address, a function's name, or a command.

    A whole path is a command, and so is a name with ARGUMENTS. Options come before it, and `--` between:
    `foliot job create tidy --every PT1H -- /usr/local/bin/tidy --all`.
    """
    is_command = arguments or handler.startswith("/")
    made = Foliot().create_job(name, [handler, *arguments] if is_command else handler, **given(values))
    if json:
        as_json(made.values)
    else:
        say(f"created {made.id} ({made.schedule_type})" + _next_run(made.values["nextRunAt"]))
        if made.schedule_type == "on_demand":
            say(f"run it with: foliot job run {made.id}")


@job.command("list")
@click.option("--tenant", help="Of this tenant; for operators.")
@click.option("--status", help="pending, running, completed, failed, cancelled, paused or blocked.")
@click.option("--name", help="Only jobs of exactly this name.")
@click.option("--label", metavar="NAME=VALUE", help="Only jobs with this label.")
@click.option(
    "--type", "schedule_type", type=click.Choice(["one_time", "recurring", "on_demand"]), help="Only jobs that run so."
)
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def list_jobs(json: bool, **query: Any) -> None:
    """List jobs, newest first."""
    found = Foliot().list_jobs(**query)
    if json:
        as_json([each.values for each in found])
        return
    rows = [{**each.values, "lastStatus": (each.last_run or {}).get("status")} for each in found]
    filtered = any(value is not None for name, value in query.items() if name != "limit")
    first = "no jobs yet: foliot job create hello https://example.com --every PT1M"
    table(rows, _COLUMNS, empty="no such jobs" if filtered else first)
    if found.next_cursor:
        say(f"… the newest {len(rows)}; --limit shows up to 500")


@job.command("get")
@job_argument
@wants_json
def get(job_id: str, json: bool) -> None:
    """Show a job."""
    _show(Foliot().get_job(job_id).values, json=json)


@job.command("edit")
@job_argument
@click.option("--name", help="Another name.")
@click.option("--handler", help="Another address or function.")
@click.option("--argv", metavar="WORD", multiple=True, help="A command instead: its program, then each argument.")
@definition
@losing
@click.option("--if-version", type=int, metavar="N", help="Only if the job is still at this version (`job get`).")
@click.option("--dry-run", is_flag=True, help="Change nothing: show which of the next fires would come and go.")
@wants_json
def edit(job_id: str, json: bool, dry_run: bool, if_version: int | None, argv: tuple[str, ...], **values: Any) -> None:
    """Change some fields of a job; instants from now on follow the new definition."""
    if argv and values["handler"] is not None:
        raise click.UsageError("--argv stands beside --handler: a job has one of them")
    without = values.pop("without")
    fields = given({**values, "handler": list(argv) or values["handler"]})
    fields |= lost(without, fields)
    if not fields:
        raise click.UsageError("say what to change, for example --cron '0 9 * * *'")
    if dry_run:
        show(Foliot().preview(job_id, **timing_of(fields)), json=json)
        return
    _show(Foliot().change_job(job_id, if_version=if_version, **fields).values, json=json)


@job.command("run")
@job_argument
@click.option("--payload", help="JSON instead of the job's own payload.")
@click.option("--priority", help="Instead of the job's own.")
@waiting
@wants_json
def run(job_id: str, payload: str | None, priority: str | None, wait: bool, timeout: float, json: bool) -> None:
    """Run a job now, besides its schedule."""
    started = Foliot().run_job(job_id, **given({"payload": payload, "priority": priority}))
    tell(started, wait=wait, timeout=timeout, json=json)


@job.command("pause")
@job_argument
@wants_json
def pause(job_id: str, json: bool) -> None:
    """Hold a job until it is resumed: nothing of it starts from holdsBy on; what runs goes on."""
    paused = Foliot().pause_job(job_id).values
    if json:
        as_json(paused)
    else:
        say(f"{job_id} is paused; nothing of it starts after {instant(paused['holdsBy'])} UTC, usually at once")
        say(f"go on with: foliot job resume {job_id}")


@job.command("resume")
@job_argument
@wants_json
def resume(job_id: str, json: bool) -> None:
    """Let a paused job go on."""
    resumed = Foliot().resume_job(job_id).values
    if json:
        as_json(resumed)
    else:
        say(f"{job_id} goes on" + _next_run(resumed["nextRunAt"]))


@job.command("delete")
@job_argument
@click.option("--purge", is_flag=True, help="Erase it with its history, once nothing of it goes on any more.")
@click.option("--yes", is_flag=True, help="Do not ask before it is erased.")
@wants_json
def delete(job_id: str, purge: bool, yes: bool, json: bool) -> None:
    """Cancel a job and its runs, those that run are asked to stop; it stays readable with its history."""
    if purge and not yes:
        confirm(f"erase {job_id} and its history for good?", instead="--yes does not ask")
    deleted = Foliot().delete_job(job_id, purge=purge).values
    if json:
        as_json(deleted)
    elif purge:
        say(f"{job_id} is cancelled and erased with its history")
    else:
        say(f"{job_id} is cancelled; it stays readable with its history: foliot job get {job_id}")


def _next_run(at: str | None) -> str:
    return f", next run {instant(at)} UTC" if at else ""


def _show(values: dict[str, Any], *, json: bool) -> None:
    if json:
        as_json(values)
    else:
        last = values["lastRun"]
        summary = last and f"{last['runId']} {last['status']}, {instant(last['finishedAt'])} UTC"
        record({**values, "lastRun": summary})


job.add_command(occurrences)
job.add_command(versions)
