"""The SQL of the store by name: every statement is written once, in `sql/*.sql`, under a `-- :name` line."""

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_NAME: Final = re.compile(r"^-- :name (\w+)$", re.MULTILINE)


def read_statements(text: str) -> dict[str, str]:
    """Those of one file."""
    parts = _NAME.split(text)
    return {name: statement.strip() for name, statement in zip(parts[1::2], parts[2::2], strict=True)}


def _load() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(files("foliot.store").joinpath("sql").iterdir(), key=lambda path: path.name):
        for name, statement in read_statements(path.read_text(encoding="utf-8")).items():
            if name in found:
                raise ValueError(f"two statements are called {name}")
            found[name] = statement
    return found


SQL: Final[Mapping[str, str]] = MappingProxyType(_load())
