"""Lists, a page at a time: what is told of one, and where the next goes on."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.ids import HIGHEST, decode

Item = TypeVar("Item")
Row = TypeVar("Row")


class Page(msgspec.Struct, Generic[Item], rename="camel"):
    """One page of a list, newest first; `nextCursor` is null on the last one."""

    items: list[Item]
    next_cursor: str | None = None


def page_of(rows: Sequence[Row], limit: int, view: Callable[[Row], Item], place: Callable[[Row], str]) -> Page[Item]:
    """The first `limit` rows; one more was fetched, if there is one, and says that the list goes on at a `place`."""
    more = len(rows) > limit
    return Page([view(row) for row in rows[:limit]], place(rows[limit - 1]) if more else None)


def id_below(cursor: str | None) -> int:
    """The ids of a page's rows are lower than this; on the first page, any are."""
    if cursor is None:
        return HIGHEST
    try:
        return decode("c", cursor)
    except InvalidField:
        raise strange_cursor() from None


def strange_cursor() -> InvalidField:
    return InvalidField("cursor", "is not one of ours", "pass nextCursor of the page before, unchanged")
