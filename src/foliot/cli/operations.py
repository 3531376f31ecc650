"""`foliot operation …` and `foliot job backfill`: work on many runs, how far it is, calling it off."""

from time import sleep
from typing import Any

import click

from foliot.cli.naming import JOB, job_argument, operation_argument
from foliot.cli.output import Column, as_json, instant, progress, record, say, table, wants_json
from foliot.sdk.client import Foliot
from foliot.sdk.client.lasting import Operation

_COLUMNS = (
    Column("operationId", "OPERATION"),
    Column("name", "NAME", shrinks=True),
    Column("status", "STATUS"),
    Column("done", "DONE"),
    Column("failed", "FAILED"),
    Column("createdAt", "CREATED (UTC)", optional=True),
    Column("jobId", "JOB", optional=True),
)
_LOOK = 0.3
"""Seconds between looks while somebody watches."""


@click.group()
def operation() -> None:
    """Back-fills, replays and discards: how far they are, and calling them off."""


@operation.command("list")
@click.option("--status", help="pending, running, completed, failed or cancelled.")
@click.option("--job", metavar="JOB", type=JOB, help="Only those of this job.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def list_operations(json: bool, **query: Any) -> None:
    """List back-fills, replays and discards, newest first."""
    found = Foliot().operations(**query)
    if json:
        as_json([each.values for each in found])
        return
    rows = [{**each.values, "done": _done(each), "failed": each.progress["failed"]} for each in found]
    filtered = any(value is not None for name, value in query.items() if name != "limit")
    table(
        rows,
        _COLUMNS,
        empty="no such operations" if filtered else "no operations yet: foliot job backfill, foliot dead replay",
    )
    if found.next_cursor:
        say(f"… the newest {len(rows)}; --limit shows up to 500")


@operation.command("get")
@operation_argument
@wants_json
def get(operation_id: str, json: bool) -> None:
    """Show an operation and its progress."""
    _show(Foliot().operation(operation_id), json=json)


@operation.command("cancel")
@operation_argument
@wants_json
def cancel(operation_id: str, json: bool) -> None:
    """Hand out nothing more and end what waits; what runs goes on."""
    _show(Foliot().cancel_operation(operation_id), json=json)


@click.command("backfill")
@job_argument
@click.option(
    "--from", "--since", "start", required=True, metavar="INSTANT", help="First instant, as in 2026-01-01T00:00:00Z."
)
@click.option("--until", required=True, metavar="INSTANT", help="Last instant, included; it has passed.")
@click.option("--name", help="To know it by.")
@click.option("--concurrency", type=click.IntRange(1, 1000), help="Runs under way at the same time; 1 if not given.")
@click.option("--order", type=click.Choice(["oldest", "newest"]), help="Which go first; the oldest if not given.")
@click.option(
    "--reprocess",
    type=click.Choice(["none", "failed", "all"]),
    help="Of instants that were dealt with before: run none again, those that did not succeed, or all.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be run.")
@click.option("--wait", is_flag=True, help="Show the progress until its end; exit 1 unless it completed.")
@wants_json
def backfill(job_id: str, wait: bool, json: bool, **fields: Any) -> None:
    """Run the instants of a past range of a recurring JOB, at a pace of their own."""
    made = Foliot().backfill(job_id, **fields)
    if fields["dry_run"] and not json:
        _show_plan(made)
    else:
        follow(made, wait=wait, json=json)


def follow(made: Operation, *, wait: bool, json: bool) -> None:
    """Say what was begun; told to `wait`, show the progress until its end, and exit 1 unless it completed."""
    if wait:
        _watch(made)
    if json:
        as_json(made.values)
    else:
        say(f"{made.id} {made.status}: {_done(made)}, {made.progress['failed']} failed")
        if not made.is_over:
            _say_how_to_go_on(made)
    if wait and made.status not in {"completed", "planned"}:
        raise click.exceptions.Exit(1)


def _watch(made: Operation) -> None:
    """A bar on the terminal until the end. Ctrl-C stops watching, not the operation."""
    if made.is_over:
        return
    try:
        with progress(_to_run(made), made.id) as advance:
            shown = 0
            while not made.is_over:
                sleep(_LOOK)
                made.refresh()
                shown, before = _ended(made), shown
                advance(shown - before)
    except KeyboardInterrupt:
        click.echo(f"\nno longer watching; {made.id} goes on", err=True)


def _say_how_to_go_on(made: Operation) -> None:
    say(f"watch it with: foliot operation get {made.id}")
    say(f"stop it with:  foliot operation cancel {made.id}")


def _show_plan(made: Operation) -> None:
    plan = made.plan
    say(f"{plan['toRun']:,} of {made.progress['total']:,} instants would be run; nothing was written")
    if plan["alreadyDone"]:
        say(f"{plan['alreadyDone']:,} were dealt with before: --reprocess runs them again")
    if plan["underWay"]:
        say(f"{plan['underWay']:,} are queued or running, or about to be")
    shown = plan["first"] + [at for at in plan["last"] if at not in plan["first"]]
    for place, at in enumerate(shown):
        if place == len(plan["first"]) and plan["toRun"] > len(shown):
            say("  …")
        say(f"  {instant(at)} UTC")


def _show(found: Operation, *, json: bool) -> None:
    if json:
        as_json(found.values)
    else:
        shown = {name: value for name, value in found.values.items() if name not in {"arguments", "progress"}}
        record({**shown, **found.arguments, **found.progress})


def _to_run(made: Operation) -> int:
    return int(made.progress["total"] - made.progress["skipped"])


def _ended(made: Operation) -> int:
    return sum(int(made.progress[name]) for name in ("succeeded", "failed", "cancelled"))


def _done(made: Operation) -> str:
    return f"{_ended(made):,}/{_to_run(made):,}"
