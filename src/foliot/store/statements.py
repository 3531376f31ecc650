"""The SQL of the store by name: every statement is written once, in `sql/*.sql`, under a `-- :name` line."""

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_NAME: Final = re.compile(r"^-- :name (\w+)$", re.MULTILINE)


def _load() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(files("foliot.store").joinpath("sql").iterdir(), key=lambda path: path.name):
        parts = _NAME.split(path.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two statements are called {name}")
            found[name] = text.strip()
    return found


SQL: Final[Mapping[str, str]] = MappingProxyType(_load())
