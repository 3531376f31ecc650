"""`foliot dead …`: runs that have used their attempts, and what becomes of them."""

from typing import Any, Final

import click

from foliot.cli.naming import DEAD, JOB, QUEUE
from foliot.cli.operations import follow
from foliot.cli.output import Column, as_json, confirm, record, say, table, wants_json
from foliot.sdk.client import Foliot
from foliot.sdk.client.lasting import Operation

_COLUMNS: Final = (
    Column("runId", "RUN"),
    Column("handler", "HANDLER", shrinks=True),
    Column("attempts", "TRIES"),
    Column("diedAt", "DIED (UTC)"),
    Column("errorClass", "KIND", shrinks=True),
    Column("errorMessage", "ERROR", shrinks=True, optional=True),
    Column("jobId", "JOB", optional=True),
)
_EXECUTIONS: Final = (
    Column("attempt", "TRY"),
    Column("status", "STATUS"),
    Column("startedAt", "STARTED (UTC)"),
    Column("finishedAt", "FINISHED (UTC)"),
    Column("errorClass", "KIND", shrinks=True),
    Column("errorMessage", "ERROR", shrinks=True),
)
_MOST_REFUSED: Final = 10
"""Refusals that are shown one by one."""


@click.group()
def dead() -> None:
    """Runs that have used their attempts: look through them, let them go on, give them up."""


def which(command: Any) -> Any:
    """The options that say which dead letters are meant."""
    options = [
        click.option("--job", metavar="JOB", type=JOB, help="Only runs of this job."),
        click.option("--error-class", metavar="KIND", help="Only this kind of error: ValueError, http:503, timeout."),
        click.option("--text", help="Only with this text in the error."),
        click.option("--since", metavar="INSTANT", help="Only what died at or after this instant."),
        click.option("--until", metavar="INSTANT", help="Only what died at or before this instant."),
        click.option("--queue", type=QUEUE, help="Only runs of this queue."),
        click.option("--handler", help="Only this function, or http."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def how(command: Any) -> Any:
    """The options of those that decide about many."""
    options = [
        click.option("--all", "everything", is_flag=True, help="All dead letters, if no filter is given."),
        click.option("--name", help="To know the operation by."),
        click.option("--dry-run", is_flag=True, help="Only say how many there are."),
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--wait", is_flag=True, help="Show the progress until its end; exit 1 unless it completed."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@dead.command("list")
@which
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def list_dead(json: bool, **query: Any) -> None:
    """List dead letters, newest runs first."""
    found = Foliot().dead_letters(**query)
    if json:
        as_json(list(found))
        return
    filtered = any(value is not None for name, value in query.items() if name != "limit")
    table(found, _COLUMNS, empty="no such dead letters" if filtered else "no dead letters: nothing failed for good")
    if found.next_cursor:
        say(f"… the newest {len(found)}; --limit shows up to 500")


@dead.command("get")
@click.argument("run_id", metavar="RUN", type=DEAD)
@wants_json
def get(run_id: str, json: bool) -> None:
    """Show a dead letter: its payload, its last error, all its attempts."""
    found = Foliot().dead_letter(run_id)
    if json:
        as_json(found)
        return
    record({name: value for name, value in found.items() if name != "executions"})
    say("")
    table(found["executions"], _EXECUTIONS, empty="its attempts are no longer on record")


@dead.command("replay")
@click.argument("run_ids", metavar="[RUN]...", nargs=-1, type=DEAD)
@which
@click.option("--per-second", type=click.FloatRange(0.001, 10_000), help="At most so many; 100 if not given.")
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Runs under way at once; 1,000 if not given.")
@how
@wants_json
def replay(run_ids: tuple[str, ...], json: bool, **fields: Any) -> None:
    """Let dead letters go on: those named, or all that the filters mean, with their retries anew."""
    if run_ids:
        _by_id("replay", run_ids, fields, json=json)
    else:
        _by_filter("replay", fields, json=json)


@dead.command("discard")
@click.argument("run_ids", metavar="[RUN]...", nargs=-1, type=DEAD)
@which
@how
@wants_json
def discard(run_ids: tuple[str, ...], json: bool, **fields: Any) -> None:
    """Give dead letters up: those named, or all that the filters mean. Their history stays."""
    if run_ids:
        _by_id("discard", run_ids, fields, json=json)
    else:
        _by_filter("discard", fields, json=json)


def _by_id(deed: str, run_ids: tuple[str, ...], fields: dict[str, Any], *, json: bool) -> None:
    fields.pop("yes")
    if any(value not in {None, False} for value in fields.values()):
        raise click.UsageError("name runs or filter them, not both")
    client = Foliot()
    done = client.replay(run_ids) if deed == "replay" else client.discard(run_ids)
    if json:
        as_json({name: value for name, value in done.items() if name != "operation"})
    else:
        say(f"{len(done['runIds']):,} {_past(deed)}")
        for each in done["refused"][:_MOST_REFUSED]:
            say(f"{each['runId']} refused: {each['reason']}")
        if len(done["refused"]) > _MOST_REFUSED:
            say(f"… and {len(done['refused']) - _MOST_REFUSED:,} more refused")
    if done["refused"]:
        raise click.exceptions.Exit(1)


def _by_filter(deed: str, fields: dict[str, Any], *, json: bool) -> None:
    yes, wait, everything, dry_run = (fields.pop(name) for name in ("yes", "wait", "everything", "dry_run"))
    filters = ("job", "error_class", "text", "since", "until", "queue", "handler")
    if not everything and all(fields[name] is None for name in filters):
        raise click.UsageError("say which: name runs, give a filter, or --all")
    if dry_run or not yes:
        planned = _sweep(deed, dry_run=True, **fields)
        if dry_run:
            as_json(planned.values) if json else say(str(planned.message))
            return
        count = planned.progress["total"] - planned.progress["skipped"]
        if not count and not json:
            say("no such dead letters: nothing to do")
            return
        confirm(f"{deed} {count:,} dead letters?", instead="--yes does not ask, --dry-run only says how many there are")
    follow(_sweep(deed, dry_run=False, **fields), wait=wait, json=json)


def _sweep(deed: str, **fields: Any) -> Operation:
    client = Foliot()
    return client.replay_where(**fields) if deed == "replay" else client.discard_where(**fields)


def _past(deed: str) -> str:
    return "replayed" if deed == "replay" else "discarded"
