"""`foliot calendar …`: when jobs may run."""

from typing import Any

import click
import msgspec

from foliot.cli.naming import CALENDAR
from foliot.cli.output import Column, as_json, record, say, table, wants_json
from foliot.domain.errors import FoliotError
from foliot.sdk.client import Foliot

_COLUMNS = (
    Column("name", "CALENDAR", shrinks=True),
    Column("timezone", "ZONE"),
    Column("holidayCount", "HOLIDAYS"),
    Column("blackoutCount", "BLACKOUTS"),
    Column("jobs", "JOBS"),
    Column("pendingJobs", "TO FOLLOW", optional=True),
    Column("updatedAt", "CHANGED (UTC)", optional=True),
)
_STRETCHES = (Column("from", "CLOSED (UTC)"), Column("until", "UNTIL"), Column("why", "", shrinks=True))
_WEEK = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_MOST_SHOWN = 10


@click.group()
def calendar() -> None:
    """Holidays, blackout windows and business days: when jobs may run."""


@calendar.command("list")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def list_calendars(limit: int, json: bool) -> None:
    """List calendars by name."""
    found = [each.values for each in Foliot().list_calendars(limit=limit)]
    if json:
        as_json(found)
    else:
        table(found, _COLUMNS, empty="no calendars yet: foliot calendar import holidays holidays.ics")


@calendar.command("get")
@click.argument("name", type=CALENDAR)
@wants_json
def get(name: str, json: bool) -> None:
    """Show a calendar."""
    _show(Foliot().get_calendar(name).values, json=json)


@calendar.command("set")
@click.argument("name", type=CALENDAR)
@click.option("--timezone", help="IANA zone of its days and times, for example Europe/Berlin.")
@click.option("--business-days", help="For example MON-FRI or MON,WED; all days if not given.")
@click.option("--holiday", "holidays", multiple=True, metavar="DATE[=NAME]", help="May be given several times.")
@click.option(
    "--blackout", "blackouts", multiple=True, metavar="FROM/UNTIL", help="One window; local times, or with offset."
)
@click.option("--weekly", multiple=True, metavar="WINDOW", help='Every week, for example "SAT 22:00/SUN 06:00".')
@click.option("--file", type=click.Path(allow_dash=True), help="All of it as JSON instead, as `get --json` shows it.")
@wants_json
def put(name: str, file: str | None, json: bool, **values: Any) -> None:
    """Create the calendar NAME, or replace it; its jobs follow within seconds."""
    fields = _fields(values) if file is None else _from_file(file, values)
    _show(Foliot().put_calendar(name, **fields).values, json=json)


@calendar.command("import")
@click.argument("name", type=CALENDAR)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--add", is_flag=True, help="Keep the holidays and windows that are there.")
@click.option("--timezone", help="Zone of a new calendar, if the file does not say.")
@wants_json
def import_(name: str, file: str, add: bool, timezone: str | None, json: bool) -> None:
    """Take over the events of an iCalendar FILE: all-day ones as holidays, timed ones as blackouts."""
    made = Foliot().import_calendar(name, _text_of(file), mode="add" if add else None, timezone=timezone).values
    if json:
        as_json(made)
        return
    say(f"{name}: {made['events']} events, {len(made['holidays'])} holidays, {len(made['blackouts'])} blackouts")
    for trouble in made["unread"]:
        click.echo(f"line {trouble['line']} left out: {trouble['message']}", err=True)


@calendar.command("preview")
@click.argument("name", type=CALENDAR)
@click.option("--from", "--since", "since", help="From this instant on instead of from now on.")
@click.option("--until", help="Up to this instant; 90 days if not given.")
@wants_json
def preview(name: str, since: str | None, until: str | None, json: bool) -> None:
    """Show the times at which a calendar allows no work."""
    found = Foliot().preview_calendar(name, since=since, until=until)
    if json:
        as_json(found)
    else:
        table([{**each, "why": ", ".join(each["names"])} for each in found], _STRETCHES, empty="it is always open")


@calendar.command("delete")
@click.argument("name", type=CALENDAR)
@wants_json
def delete(name: str, json: bool) -> None:
    """Delete a calendar that no job follows."""
    gone = Foliot().delete_calendar(name).values
    if json:
        as_json(gone)
    else:
        say(f"deleted {name}")


def _fields(values: dict[str, Any]) -> dict[str, Any]:
    if values["timezone"] is None:
        raise click.UsageError("say of which zone its days are, for example --timezone Europe/Berlin")
    windows = [{"weekly": each} for each in values["weekly"]]
    return {
        "timezone": values["timezone"],
        "business_days": _business_days(values["business_days"]),
        "holidays": [_holiday(each) for each in values["holidays"]],
        "blackouts": [*(_blackout(each) for each in values["blackouts"]), *windows],
    }


def _text_of(file: str) -> str:
    """What is in a file, or comes through a pipe (`-`)."""
    try:
        with click.open_file(file, encoding="utf-8-sig") as opened:
            return str(opened.read())
    except OSError as error:
        raise FoliotError(f"{file} cannot be read: {error.strerror}", "is the name right?") from None
    except UnicodeDecodeError:
        raise FoliotError(f"{file} is not UTF-8", "encode it as UTF-8 first") from None


def _from_file(file: str, values: dict[str, Any]) -> dict[str, Any]:
    if any(values.values()):
        raise click.UsageError("--file has all of it: leave the other options out")
    try:
        found = msgspec.json.decode(_text_of(file), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"not a JSON object: {error}", param_hint="--file") from None
    return {name: found[name] for name in ("timezone", "businessDays", "holidays", "blackouts") if name in found}


def _business_days(text: str | None) -> list[str] | None:
    """`MON-FRI` and `SAT-MON` are ranges; what is no weekday is left to the API to refuse."""
    if text is None:
        return None
    days: list[str] = []
    for part in text.upper().split(","):
        first, dash, last = part.strip().partition("-")
        if dash and first in _WEEK and last in _WEEK:
            start = _WEEK.index(first)
            days.extend(_WEEK[(start + n) % 7] for n in range((_WEEK.index(last) - start) % 7 + 1))
        else:
            days.append(part.strip())
    return days


def _holiday(text: str) -> dict[str, str]:
    day, _, name = text.partition("=")
    return {"date": day.strip(), "name": name.strip()}


def _blackout(text: str) -> dict[str, str]:
    first, slash, last = text.partition("/")
    if not slash:
        raise click.BadParameter(f"{text!r} is not FROM/UNTIL", param_hint="--blackout")
    return {"from": first.strip(), "until": last.strip()}


def _show(values: dict[str, Any], *, json: bool) -> None:
    if json:
        as_json(values)
        return
    record({**values, "holidays": _lines(values["holidays"]), "blackouts": _lines(values["blackouts"])})


def _lines(closures: list[dict[str, str]]) -> str:
    shown = [" ".join([_when(each), each.get("name", "")]).strip() for each in closures[:_MOST_SHOWN]]
    more = len(closures) - _MOST_SHOWN
    return "\n".join([*shown, *([f"… and {more:,} more: --json shows them"] if more > 0 else [])]) or "-"


def _when(closure: dict[str, str]) -> str:
    return closure.get("date") or closure.get("weekly") or f"{closure['from']}/{closure['until']}"
