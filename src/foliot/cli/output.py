"""How the command line shows things: tables for people, JSON for programs."""

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import click
import msgspec

from foliot.domain.errors import FoliotError
from foliot.wire.codec import CONTROL

Command = TypeVar("Command", bound=Callable[..., Any])

PIPED: Final = 160
"""Columns of a table that goes into a pipe or a file."""
NARROWEST: Final = 12
"""Columns that text which may be shortened always keeps."""
_GAP: Final = "  "
_ELLIPSIS: Final = "…"
_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z")


COLOURS: Final = MappingProxyType(
    {
        "completed": "green", "live": "green", "fired": "green", "active": "green",
        "running": "cyan",
        "failed": "red", "timed_out": "red", "lost": "red", "unknown": "red", "dead": "red", "denied": "red",
        "missed": "red", "unaccounted": "red",
        "paused": "yellow", "blocked": "yellow", "draining": "yellow", "skipped": "yellow", "expired": "yellow",
        "cancelled": "bright_black", "revoked": "bright_black",
    }
)  # fmt: skip
"""Words of a table that say how something stands."""


class Column(NamedTuple):
    """One column: what is in it, and what becomes of it when there is no room."""

    field: str
    heading: str
    shrinks: bool = False
    """Shortened with an ellipsis. Ids, instants and statuses never are."""
    optional: bool = False
    """Left out, the last one first."""


def wants_json(command: Command) -> Command:
    """Give a command the option that every one has."""
    return click.option("--json", is_flag=True, help="Print JSON.")(command)


@contextmanager
def progress(length: int, label: str) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal while long work goes on; nothing where nobody watches. Gives what moves it on."""
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, show_pos=True, file=sys.stderr, hidden=hidden) as bar:
        yield bar.update


def confirm(question: str, *, instead: str) -> None:
    """Ask; without a yes, and where nobody can answer, nothing is done."""
    try:
        is_wanted = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)  # the question still stands in the line
        is_wanted = False
    if not is_wanted:
        raise FoliotError("nothing was changed: nobody said yes", instead)


def say(text: str) -> None:
    """Print; colours are for terminals, and for nobody who has set NO_COLOR."""
    click.echo(text, color=False if os.environ.get("NO_COLOR") else None)


def as_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, empty: str) -> None:
    """Print the rows one a line within the terminal's width, or a sentence when there are none."""
    if not rows:
        say(empty)
        return
    for line in laid_out(rows, columns, terminal_width()):
        say(line)


def laid_out(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], room: int) -> Iterator[str]:
    """The lines of a table that has so many columns of a terminal, in colours; the headings first."""
    cells = {column: [column.heading, *(_cell(row.get(column.field)) for row in rows)] for column in columns}
    widths = _fit({column: max(map(_width, texts)) for column, texts in cells.items()}, room)
    for number, line in enumerate(zip(*(cells[column] for column in widths), strict=True)):
        last = max((place for place, text in enumerate(line) if text), default=0)
        shown = [(text, _padded(text, width)) for text, width in zip(line, widths.values(), strict=True)][: last + 1]
        shown[-1] = (shown[-1][0], shown[-1][1].rstrip())
        yield _GAP.join(click.style(padded, **_style(text, number)) for text, padded in shown)


def _style(text: str, number: int) -> dict[str, Any]:
    return {"bold": True} if number == 0 else {"fg": COLOURS.get(text)}


def record(values: Mapping[str, Any]) -> None:
    """Print one thing, a field a line; further lines of a text are indented below the first."""
    width = max(len(name) for name in values)
    for name, value in values.items():
        first, *further = _text(value, " UTC").splitlines() or [""]
        say(f"{name:<{width}}{_GAP}{clean(first)}".rstrip())
        for line in further:
            say(f"{'':<{width}}{_GAP}{clean(line)}".rstrip())


def instant(text: str) -> str:
    """`2026-11-15 20:16:25`, in UTC like everything on the wire."""
    match = _INSTANT.fullmatch(text)
    return f"{match[1]} {match[2]}" if match else text


def terminal_width() -> int:
    return shutil.get_terminal_size((PIPED, 24)).columns


def _fit(wanted: dict[Column, int], room: int) -> dict[Column, int]:
    """Leave out optional columns until the rest fits, then shorten what may be shortened, the widest first."""
    widths = dict(wanted)

    def excess() -> int:
        return sum(widths.values()) + len(_GAP) * (len(widths) - 1) - room

    def least() -> int:
        return excess() - sum(max(0, width - NARROWEST) for column, width in widths.items() if column.shrinks)

    while least() > 0 and (optional := [column for column in widths if column.optional]):
        del widths[optional[-1]]
    while excess() > 0:
        widest = max((c for c in widths if c.shrinks), key=lambda column: widths[column], default=None)
        if widest is None or widths[widest] <= NARROWEST:
            break  # whoever has so narrow a terminal must bear lines that wrap: ids are never cut
        widths[widest] -= 1
    return widths


def _padded(text: str, width: int) -> str:
    if _width(text) > width:
        while _width(text) > width - 1:
            text = text[:-1]
        text += _ELLIPSIS
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Columns on a terminal: East Asian wide characters and most emoji take two."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text
    )


def _cell(value: Any) -> str:
    """One line: the first, or of a traceback the one that names the exception."""
    text = _text(value)
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    if text.startswith("Traceback "):
        indented = [number for number, line in enumerate(lines) if line.startswith(" ")]
        return clean(lines[min(indented[-1] + 1, len(lines) - 1)] if indented else lines[-1])
    return clean(lines[0].strip())


def _text(value: Any, zone: str = "") -> str:
    match value:
        case None:
            return "-"
        case str():
            shown = instant(value)
            return shown if shown == value else shown + zone
        case _:
            return msgspec.json.encode(value).decode()


def clean(text: str) -> str:
    """What comes from elsewhere must not steer the terminal."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", "    "))
