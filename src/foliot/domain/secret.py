"""Secrets and references to them: `{"$secret": "name"}`, wherever a value may stand."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from foliot.domain.errors import InvalidField

REFERENCE: Final = "$secret"
LONGEST_VALUE: Final = 64 * 1024
"""Bytes."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DEEPEST: Final = 100


class SecretRef(
    msgspec.Struct, frozen=True, rename={"name": REFERENCE}, forbid_unknown_fields=True, gc=False, order=True
):
    """Stands for the value of a secret of the same tenant, which is put in its place when a worker begins the run."""

    name: str


Text = str | SecretRef
"""A text, or the secret that it is."""


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        hint = "letters, digits, '_', '-' and '.', at most 100, not beginning with '-' or '.'"
        raise InvalidField("name", f"{name[:40]!r} cannot be the name of a secret", hint)
    return name


def check_value(value: str) -> str:
    if not value:
        raise InvalidField("value", "is empty", "delete the secret instead")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidField("value", "contains half a surrogate pair", "send text that is text") from None
    if size > LONGEST_VALUE or "\0" in value:
        hint = "encode what is not text, as base64 for example"
        raise InvalidField("value", f"is longer than {LONGEST_VALUE:,} bytes, or contains NUL", hint)
    return value


def names_in(value: Any, depth: int = 0) -> Iterator[str]:
    """The secrets that a JSON value refers to."""
    if depth > _DEEPEST:
        return
    match value:
        case {"$secret": str() as name} if len(value) == 1:
            yield name
        case dict():
            for part in value.values():
                yield from names_in(part, depth + 1)
        case list():
            for part in value:
                yield from names_in(part, depth + 1)
        case _:
            pass


def resolved(value: Any, secrets: Mapping[str, str], depth: int = 0) -> Any:
    """The JSON value with every reference replaced by what it stands for; all of them must be known."""
    if depth > _DEEPEST:
        return value
    match value:
        case {"$secret": str() as name} if len(value) == 1:
            return secrets[name]
        case dict():
            return {key: resolved(part, secrets, depth + 1) for key, part in value.items()}
        case list():
            return [resolved(part, secrets, depth + 1) for part in value]
        case _:
            return value
