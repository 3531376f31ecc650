"""What a command says when it cannot: one line of what went wrong, one of what to do next, and how it exits."""

import os

import click

from foliot.cli.codes import Code
from foliot.domain.errors import FoliotError, InvalidField
from foliot.kit.settings import Settings, client_file
from foliot.sdk import ApiError, NotConfigured

_UNAUTHORISED = 401
_AWAY = frozenset({0, 502, 503, 504})
"""Statuses of answers that are none: nobody is there, or somebody between us and Foliot says so."""


class NoDatabase(FoliotError):  # noqa: N818 - reads aloud
    """No database is known here, or it does not answer."""


class Failed(click.ClickException):
    """What went wrong, and below it what to do next."""

    def __init__(self, error: FoliotError) -> None:
        message = f"{error.field}: {error.message}" if isinstance(error, InvalidField) else error.message
        errors = getattr(error, "errors", [])
        hints = [each.hint for each in errors if each.hint] or ([error.hint] if error.hint else [])
        if isinstance(error, ApiError) and error.status == _UNAUTHORISED:
            hints = [f"it was that of {_key_source()}; `foliot key create TENANT` makes another, for FOLIOT_KEY"]
        super().__init__("\n".join([message, *(f"  → {hint}" for hint in dict.fromkeys(hints))]))
        self.exit_code = code_of(error)  # type: ignore[misc]  # click reads it from the instance


def code_of(error: FoliotError) -> Code:
    if isinstance(error, ApiError):
        return Code.UNREACHABLE if error.status in _AWAY else Code.FAILED
    return Code.UNREACHABLE if isinstance(error, NotConfigured | NoDatabase) else Code.FAILED


def unexpected(error: Exception) -> FoliotError:
    """A fault of Foliot's own, told as short as any other."""
    hint = "this is a fault in Foliot: FOLIOT_LOG_LEVEL=debug shows where; please report it"
    return FoliotError(f"unexpected {type(error).__name__}: {error}", hint)


def _key_source() -> str:
    return "FOLIOT_KEY" if os.environ.get("FOLIOT_KEY") else str(client_file(Settings.read(os.environ).home))
