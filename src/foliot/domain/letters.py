"""Dead letters: which of them are meant, and what is to be done with them."""

from datetime import datetime
from typing import Any, Final

import msgspec

from foliot.domain.operation import OperationKind

MOST_BY_ID: Final = 1_000
"""Dead letters that one call replays or discards at once."""
MOST_ATTEMPTS: Final = 30_000
"""A run that has been tried so often is not replayed any more: its attempts are counted in 15 bits."""


class Selection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Those dead letters of a tenant for which all of this holds; what is none does not matter."""

    job: int | None = None
    error_class: str | None = None
    """With its module or without."""
    text: str | None = None
    """Somewhere in the error, whatever the case."""
    since: datetime | None = None
    until: datetime | None = None
    """When they died, both included."""
    queue: str | None = None
    handler_group: str | None = None


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks to be done with many dead letters."""

    kind: OperationKind
    selection: Selection
    arguments: dict[str, Any]
    """The same in the words of the wire."""
    name: str
    per_second: float | None
    """At most so many; none: as many as can be."""
    concurrency: int
    """Replayed runs that are under way at the same time."""
