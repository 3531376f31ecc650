"""`foliot worker …`: serve handlers, look at the workers that do, have one leave."""

from typing import Any

import click

from foliot.cli import processes
from foliot.cli.naming import WORKER
from foliot.cli.output import Column, as_json, record, say, table, wants_json
from foliot.sdk.client import Foliot

_COLUMNS = (
    Column("workerId", "WORKER"),
    Column("name", "NAME", shrinks=True),
    Column("state", "STATE"),
    Column("load", "RUNNING"),
    Column("queues", "QUEUES", shrinks=True),
    Column("lastSeenAt", "LAST SEEN (UTC)"),
    Column("handlers", "HANDLERS", shrinks=True, optional=True),
)
_LABELS = Column("labels", "LABELS", shrinks=True)
_SERVE = "serve"


class _ServesByDefault(click.Group):
    """`foliot worker shop:worker` means `foliot worker serve shop:worker`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._complete(ctx, args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, self._complete(ctx, args))

    def _complete(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and (args[0] in self.commands or args[0] in self.get_help_option_names(ctx)):
            return args
        return [_SERVE, *args]


@click.group(cls=_ServesByDefault)
def worker() -> None:
    """Run handlers, or look after the workers that do.

    `foliot worker MODULE:WORKER` is short for `foliot worker serve MODULE:WORKER`, which explains its options.
    """


worker.add_command(processes.worker, _SERVE)


@worker.command("list")
@click.option("--state", type=click.Choice(["live", "draining", "dead"]), help="Only these; the dead for a day.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def list_workers(json: bool, **query: Any) -> None:
    """List workers, the newest first: what they offer and what they have in hand."""
    found = Foliot().workers(**query)
    if json:
        as_json([each.values for each in found])
        return
    rows = [{**each.values, **_shown(each.values)} for each in found]
    columns = (*_COLUMNS[:5], _LABELS, *_COLUMNS[5:]) if any(row["labels"] for row in rows) else _COLUMNS
    table(rows, columns, empty="no such workers" if query["state"] else "no worker was seen for a day")
    if found.next_cursor:
        say(f"… the newest {len(rows)}; --limit shows up to 500")


@worker.command("drain")
@click.argument("worker_id", metavar="WORKER", type=WORKER)
@wants_json
def drain(worker_id: str, json: bool) -> None:
    """Have a worker claim nothing more, finish what it runs, and leave; its supervisor does not start it again."""
    drained = Foliot().drain_worker(worker_id)
    if json:
        as_json(drained.values)
    else:
        record({**drained.values, **_shown(drained.values)})


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    return {
        "load": f"{values['running']}/{values['concurrency']}",
        "queues": ", ".join(values["queues"]),
        "handlers": ", ".join(values["handlers"]),
        "labels": ", ".join(values.get("labels", ())),
    }
