"""What changes between two definitions, and how it is shown: a field a line, what it was and what it is to be."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from foliot.cli.output import clean, say

_WIDEST: Final = 60
"""Characters of a value."""


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What changes, by the path of the field: what is there, and what is wanted instead; None where nothing is."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    paths = [*old, *(path for path in new if path not in old)]
    return {path: (old.get(path), new.get(path)) for path in paths if old.get(path) != new.get(path)}


def _leaves(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in value.items():
        if isinstance(each, dict) and each:
            yield from _leaves(each, f"{above}{name}.")
        elif above or name == "payload" or each not in ({}, [], None):
            yield f"{above}{name}", each


def show_fields(differs: Mapping[str, tuple[Any, Any]]) -> None:
    """`priority  normal → high`, indented; by the path of the field."""
    width = max(map(len, differs), default=0)
    for path, (before, after) in differs.items():
        say(clean(f"    {path:<{width}}  {_value(before)} → {_value(after)}"))


def _value(value: Any) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
