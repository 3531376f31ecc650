"""`foliot top`: how things stand, again and again, until Ctrl-C."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
import msgspec

from foliot.cli.output import Column, as_json, instant, laid_out, say, terminal_width, wants_json
from foliot.cli.top_sight import Sight, look
from foliot.sdk import ApiError
from foliot.sdk.client import Foliot
from foliot.sdk.protocol import access_or_fail

if TYPE_CHECKING:
    from rich.console import Console

Show = Callable[[Sight, str], None]
"""Shows a sight, and what has kept us from a newer one."""

_QUEUES: Final = (
    Column("name", "QUEUE", shrinks=True),
    Column("standing", "STATE"),
    Column("ready", "READY"),
    Column("running", "RUNNING"),
    Column("rate", "RUNS/S"),
    Column("age", "OLDEST"),
    Column("workers", "WORKERS"),
    Column("deadLetters", "DEAD"),
    Column("unserved", "WITHOUT A WORKER", shrinks=True, optional=True),
)
_WORKERS: Final = (
    Column("workerId", "WORKER"),
    Column("name", "NAME", shrinks=True),
    Column("state", "STATE"),
    Column("load", "RUNNING"),
    Column("queues", "QUEUES", shrinks=True),
)
_RUNS: Final = (
    Column("runId", "RUN"),
    Column("handler", "HANDLER", shrinks=True),
    Column("attempts", "TRY"),
    Column("since", "FOR"),
    Column("jobId", "JOB", optional=True),
)
_LEAST_ROWS: Final = 3


@click.command()
@click.option(
    "--interval",
    type=click.FloatRange(0.5, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks.",
)
@click.option("--once", is_flag=True, help="Look once; so it is, too, where the output is no terminal.")
@wants_json
def top(interval: float, once: bool, json: bool) -> None:
    """Watch queues, workers and what runs; Ctrl-C ends it. With --json, a line for each look.

    Queues and workers are shared by all tenants: only an operator's key sees them.
    """
    access = access_or_fail(None, None)
    client = Foliot(access.url, access.key, max_retries=0)  # who watches looks again anyway
    sight = look(client, access)
    if json and once:
        as_json(sight)
    elif once or (not json and not sys.stdout.isatty()):
        for line in drawn(sight, terminal_width(), None):
            say(line)
    else:
        with _lines() if json else screen() as show, suppress(KeyboardInterrupt):
            watch(sight, partial(look, client, access), show, partial(sleep, interval))


def drawn(sight: Sight, width: int, height: int | None) -> Iterator[str]:
    """The picture, line by line; with a height, of no more lines than that."""
    yield from _heading(sight)
    tables = [
        (_QUEUES, [_queue(each) for each in sight["queues"] or ()], "no queues yet"),
        (_WORKERS, [_worker(each) for each in sight["workers"] or ()], "no worker lives: start `foliot worker`"),
        (_RUNS, [_run(each, sight["at"]) for each in sight["runs"]], "nothing runs"),
    ]
    if sight["queues"] is None:
        tables = tables[2:]
        yield "queues and workers are shown to an operator's key"
    room = None if height is None else max(_LEAST_ROWS, (height - 5 - 3 * len(tables)) // len(tables))
    for columns, rows, empty in tables:
        yield ""
        if not rows:
            yield click.style(empty, dim=True)
            continue
        yield from laid_out(rows[:room], columns, width)
        if room is not None and len(rows) > room:
            yield click.style(f"… and {len(rows) - room} more", dim=True)


def _heading(sight: Sight) -> Iterator[str]:
    yield click.style(f"foliot {sight['url']}", bold=True) + f"   {instant(sight['at'])} UTC"
    if sight["ready"] is None:
        counts = f"{sight['running']} running"
    else:
        counts = (
            f"{sight['ready']:,} ready, {sight['running']:,} running, {sight['scheduled']:,} scheduled; "
            f"{sight['rate']:.1f} runs/s; oldest waits {_age(sight['oldestAgeSeconds'])}"
        )
    yield counts
    parts = [
        _alarm(sight["schedulers"], "scheduler", "schedulers", is_bad=sight["schedulers"] == 0),
        _alarm(sight["liveWorkers"], "worker", "workers", is_bad=sight["liveWorkers"] == 0),
        _alarm(
            sight["overdueSchedules"], "schedule overdue", "schedules overdue", is_bad=bool(sight["overdueSchedules"])
        ),
        _alarm(sight["deadLetters"], "dead letter", "dead letters", is_bad=bool(sight["deadLetters"])),
    ]
    yield ", ".join(filter(None, parts))


def _alarm(value: float | None, one: str, many: str, *, is_bad: bool) -> str:
    if value is None:
        return ""
    return click.style(f"{value:,.0f} {one if value == 1 else many}", fg="red" if is_bad else None)


def _queue(values: dict[str, Any]) -> dict[str, Any]:
    return {
        **values,
        "standing": "paused" if values["pausedAt"] else "open",
        "rate": f"{values['rate']:.1f}",
        "age": _age(values["oldestAgeSeconds"] if values["ready"] else None),
        "unserved": ", ".join(values["unserved"]) or "-",
    }


def _worker(values: dict[str, Any]) -> dict[str, Any]:
    load = f"{values['running']}/{values['concurrency']}"
    return {**values, "load": load, "queues": ", ".join(values["queues"])}


def _run(values: dict[str, Any], now: str) -> dict[str, Any]:
    started = values["startedAt"]
    since = None if started is None else datetime.fromisoformat(now) - datetime.fromisoformat(started)
    return {**values, "since": _age(None if since is None else max(0.0, since.total_seconds()))}


def _age(seconds: float | None) -> str:
    """`12s`, `3m 20s`, `5h 12m`, `4d 3h`"""
    if seconds is None:
        return "-"
    whole = int(seconds)
    for unit, length, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length}{unit} {whole % length // part}{smaller}"
    return f"{whole}s"


def watch(sight: Sight, again: Callable[[], Sight], show: Show, pause: Callable[[], None]) -> NoReturn:
    """Show it, look again, for ever. That nobody answers for a while is shown, and is no end."""
    trouble = ""
    while True:
        show(sight, trouble)
        pause()
        try:
            sight, trouble = again(), ""
        except ApiError as error:
            trouble = error.message


@contextmanager
def _lines() -> Iterator[Show]:
    """JSON, a line for each look; of one that failed, none."""

    def show(sight: Sight, trouble: str) -> None:
        if not trouble:
            click.echo(msgspec.json.encode(sight))

    yield show


@contextmanager
def screen(console: "Console | None" = None) -> Iterator[Show]:
    """The whole terminal, given back at the end as it was."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = console or Console(highlight=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def show(sight: Sight, trouble: str) -> None:
            lines = list(drawn(sight, console.width, console.height))
            if trouble:
                lines.insert(1, click.style(f"{trouble}; this is from before", fg="red"))
            live.update(Text.from_ansi("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)

        yield show
