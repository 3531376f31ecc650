"""How the command line shows what changes: a field a line, what it was and what it is to be."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from foliot.cli.output import clean, say

_WIDEST: Final = 60
"""Characters of a value."""


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
