"""How the command line shows things: tables for people, JSON for programs."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
import msgspec

Command = TypeVar("Command", bound=Callable[..., Any])


def wants_json(command: Command) -> Command:
    """Give a command the option that every one has."""
    return click.option("--json", is_flag=True, help="Print JSON.")(command)


def say(text: str) -> None:
    click.echo(text)


def as_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def table(rows: Sequence[dict[str, Any]], columns: dict[str, str], *, empty: str) -> None:
    """Print `columns` (field to heading) of `rows`, or a sentence when there are none."""
    if not rows:
        say(empty)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in columns.values():
        shown.add_column(heading, overflow="fold")
    for row in rows:
        shown.add_row(*(_cell(row.get(field)) for field in columns))
    Console(soft_wrap=False).print(shown)


def record(values: dict[str, Any]) -> None:
    """Print one thing, a field a line."""
    width = max(len(name) for name in values)
    for name, value in values.items():
        say(f"{name:<{width}}  {_cell(value)}")


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case str():
            return value
        case _:
            return msgspec.json.encode(value).decode()
