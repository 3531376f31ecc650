"""What a command says when it cannot: one line of what went wrong, one of what to do next, and how it exits."""

import os
import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

import click

from foliot.cli.codes import Code
from foliot.domain.errors import FoliotError, InvalidField
from foliot.kit.postgres import PostgresError
from foliot.kit.settings import Settings, client_file
from foliot.sdk import ApiError, NotConfigured

_UNAUTHORISED = 401
_AWAY = frozenset({0, 502, 503, 504})
"""Statuses of answers that are none: nobody is there, or somebody between us and Foliot says so."""
_NO_SUCH: Final = re.compile(r"there is no such ([a-z ]+)")
_LISTS: Final = MappingProxyType(
    {
        "job": "job list", "run": "run list", "dead letter": "dead list", "operation": "operation list",
        "calendar": "calendar list", "worker": "worker list", "queue": "queue list", "tenant": "tenant list",
        "key": "key list", "secret": "secret list",
    }
)  # fmt: skip
"""What shows those that there are."""
_PLACE: Final = re.compile(r"\[\d+\]")


class NoDatabase(FoliotError):  # noqa: N818 - reads aloud
    """No database is known here, or it does not answer."""


class Failed(click.ClickException):
    """What went wrong, and below it what to do next."""

    def __init__(self, error: FoliotError, command: click.Command | None = None) -> None:
        """Fields that the command has an option for are called by its name."""
        super().__init__(
            "\n".join([_message(error, command), *(f"  → {hint}" for hint in dict.fromkeys(_hints(error)))])
        )
        self.exit_code = code_of(error)  # type: ignore[misc]  # click reads it from the instance


def typed(group: click.Group, context: click.Context, words: Sequence[str]) -> click.Command:
    """The command that these words lead to."""
    command: click.Command = group
    for word in words:
        if not isinstance(command, click.Group) or (found := command.get_command(context, word)) is None:
            break
        command = found
    return command


def code_of(error: FoliotError) -> Code:
    if isinstance(error, ApiError):
        return Code.UNREACHABLE if error.status in _AWAY else Code.FAILED
    return Code.UNREACHABLE if isinstance(error, NotConfigured | NoDatabase) else Code.FAILED


def unexpected(error: Exception) -> FoliotError:
    """A fault of Foliot's own, told as short as any other; one of the embedded database's says itself what to do."""
    if isinstance(error, PostgresError):
        return FoliotError(str(error))
    hint = "this is a fault in Foliot: FOLIOT_LOG_LEVEL=debug shows where; please report it"
    return FoliotError(f"unexpected {type(error).__name__}: {error}", hint)


def _message(error: FoliotError, command: click.Command | None) -> str:
    if isinstance(error, InvalidField):
        return f"{_called(error.field, command)}: {error.message}"
    if isinstance(error, ApiError) and error.errors and error.message.startswith(f"{error.errors[0].field}: "):
        first = error.errors[0]
        return f"{_called(first.field, command)}: {first.message}"
    return error.message


def _called(field: str, command: click.Command | None) -> str:
    """What whoever typed the command calls this field: `--at` for `scheduleAt`."""
    plain = _PLACE.sub("", field)
    for option in () if command is None else command.params:
        if isinstance(option, click.Option) and _wired(option.name or "") == plain:
            return max(option.opts, key=len)
    return field


def _wired(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _hints(error: FoliotError) -> Iterator[str]:
    if isinstance(error, ApiError) and error.status == _UNAUTHORISED:
        yield f"the one of {_key_source()} is wrong, expired or revoked; `foliot key create TENANT` makes another"
    elif (match := _NO_SUCH.fullmatch(error.message)) and match[1] in _LISTS:
        yield f"`foliot {_LISTS[match[1]]}` shows those that there are"
    elif told := [each.hint for each in getattr(error, "errors", ()) if each.hint]:
        yield from told
    elif error.hint:
        yield error.hint


def _key_source() -> str:
    return "FOLIOT_KEY" if os.environ.get("FOLIOT_KEY") else str(client_file(Settings.read(os.environ).home))
