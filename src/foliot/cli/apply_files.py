"""Jobs as code: what files of TOML, YAML or JSON declare, read and checked before anything is asked or written."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import click
import msgspec
import yaml

from foliot.cli.apply_forms import OWNER, Form, calendar_form, job_form, needs
from foliot.domain.errors import FoliotError, InvalidField
from foliot.wire.calendars import NAME as CALENDAR_NAME
from foliot.wire.codec import rfc3339
from foliot.wire.jobs import check_key

_OWNER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")
_MOST_SHOWN: Final = 20
"""Faults that are told at once."""


class Declared(NamedTuple):
    """What an owner wants to be there; by key and by name."""

    owner: str
    jobs: dict[str, Form]
    """Parents before those that depend on them."""
    calendars: dict[str, Form]


class Wrong(FoliotError):  # noqa: N818 - reads aloud
    """All that is wrong with the files, a line each."""

    def __init__(self, faults: Sequence[InvalidField]) -> None:
        lines = [f"{each.field}: {each.message}" + (f" → {each.hint}" if each.hint else "") for each in faults]
        more = len(lines) - _MOST_SHOWN
        shown = [*lines[:_MOST_SHOWN], *([f"… and {more:,} more"] if more > 0 else [])]
        super().__init__("\n  ".join(["nothing was changed, because this is wrong:", *shown]))


class _File(msgspec.Struct, forbid_unknown_fields=True):
    owner: str | None = None
    jobs: dict[str, dict[str, Any]] = {}
    calendars: dict[str, dict[str, Any]] = {}


def read_files(files: Iterable[str], owner: str | None) -> Declared:
    """What the files declare together, or Wrong with all that is wrong with it."""
    read = {file: _read(file) for file in files}
    faults: list[InvalidField] = []
    named = _owner(read, owner)
    calendars = {
        name: form
        for name, fields in _merged(read, "calendars", faults).items()
        if (form := _checked(f"calendars.{name}", _calendar, name, fields, faults)) is not None
    }
    jobs = {
        key: form
        for key, fields in _merged(read, "jobs", faults).items()
        if (form := _checked(f"jobs.{key}", _job(named), key, fields, faults)) is not None
    }
    order = _ordered(jobs, faults)
    if faults:
        raise Wrong(faults)
    return Declared(named, {key: jobs[key] for key in order}, calendars)


def _read(file: str) -> _File:
    try:
        with click.open_file(file, encoding="utf-8-sig") as opened:
            text = str(opened.read())
    except OSError as error:
        raise FoliotError(f"{file} cannot be read: {error.strerror}", "is the name right?") from None
    except UnicodeDecodeError:
        raise FoliotError(f"{file} is not UTF-8", "encode it as UTF-8 first") from None
    try:
        return msgspec.convert(_decoded(file, text), _File)
    except (tomllib.TOMLDecodeError, yaml.YAMLError, msgspec.DecodeError) as error:
        hint = "it has an owner, jobs by key and calendars by name: docs/guides/jobs-as-code.md shows one"
        raise FoliotError(f"{file}: {' '.join(str(error).split())}", hint) from None


def _decoded(file: str, text: str) -> Any:
    """By the name's ending; what comes through a pipe (`-`) is JSON if it begins like it, else TOML."""
    match PurePath(file).suffix.lower():
        case ".json":
            return msgspec.json.decode(text)
        case ".yaml" | ".yml":
            return _plain(yaml.safe_load(text))
        case "" if text.lstrip().startswith("{"):
            return msgspec.json.decode(text)
        case _:
            return _plain(tomllib.loads(text))


def _plain(value: Any) -> Any:
    """TOML and YAML have dates and times of their own; on the wire they are text."""
    match value:
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case datetime() if value.tzinfo is not None:
            return rfc3339(value)
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return value


def _owner(read: Mapping[str, _File], given: str | None) -> str:
    """Who declares all this: one owner, so that nothing of another's can be meant."""
    said = {file.owner for file in read.values() if file.owner is not None}
    if given is not None:
        said.add(given)
    if not said:
        raise FoliotError("nobody owns these jobs", 'write owner = "NAME" at the top of the file, or give --owner NAME')
    if len(said) > 1:
        raise FoliotError(f"several owners: {', '.join(sorted(said))}", "apply the files of each owner by themselves")
    (owner,) = said
    if not _OWNER.fullmatch(owner):
        raise FoliotError(f"{owner!r} is not an owner's name", "letters, digits, '.', '_', '/' and '-', at most 63")
    return owner


def _merged(read: Mapping[str, _File], part: str, faults: list[InvalidField]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    for file, content in read.items():
        for key, fields in getattr(content, part).items():
            if (first := places.setdefault(key, file)) != file:
                faults.append(
                    InvalidField(f"{part}.{key}", f"stands in {first} and in {file}", "leave one of them out")
                )
            found[key] = fields
    return found


def _checked(
    place: str,
    check: Callable[[str, dict[str, Any]], Form],
    key: str,
    fields: dict[str, Any],
    faults: list[InvalidField],
) -> Form | None:
    try:
        return check(key, fields)
    except InvalidField as error:
        faults.append(error.within(place))
        return None


def _calendar(name: str, fields: dict[str, Any]) -> Form:
    if not CALENDAR_NAME.fullmatch(name):
        raise InvalidField("name", "not a calendar's name", "lower-case letters, digits, '.', '_' and '-'")
    return calendar_form(fields)


def _job(owner: str) -> Callable[[str, dict[str, Any]], Form]:
    def check(key: str, fields: dict[str, Any]) -> Form:
        check_key(key)
        if fields.get("key", key) != key:
            raise InvalidField("key", "is another than the one above it", "leave it out: [jobs.KEY] says it")
        labels = fields.get("labels", {})
        if isinstance(labels, dict):
            if OWNER in labels:
                raise InvalidField("labels", f"{OWNER} is set by `foliot apply`", "leave it out")
            labels = {**labels, OWNER: owner}
        return job_form({"name": key, **fields, "key": key, "labels": labels})

    return check


def _ordered(jobs: Mapping[str, Form], faults: list[InvalidField]) -> list[str]:
    """Keys so that each comes after what it depends on, otherwise as they stand in the files."""
    sorter: TopologicalSorter[str] = TopologicalSorter(
        {key: [parent for parent in needs(form) if parent in jobs] for key, form in jobs.items()}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        named = " → ".join(reversed(error.args[1]))
        faults.append(InvalidField("jobs", f"wait for each other for ever: {named}", "take one dependsOn out"))
        return []
    places = {key: place for place, key in enumerate(jobs)}
    order: list[str] = []
    ready: list[tuple[int, str]] = []
    while sorter.is_active():
        for key in sorter.get_ready():
            heappush(ready, (places[key], key))
        order.append(heappop(ready)[1])
        sorter.done(order[-1])
    return order
