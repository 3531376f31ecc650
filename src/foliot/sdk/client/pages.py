# Written by `make sdk` from sdk/aio/pages.py: change that.
"""Lists, page by page or from end to end."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


class Items(list[Item]):
    """One page of a list. `all()` goes on through the following ones; `next_cursor` is none on the last.

    By hand: pass `next_cursor` as `cursor` to get the next page, also in another process or on another day.
    """

    def __init__(
        self,
        items: Iterable[Item],
        next_cursor: str | None,
        following: Callable[[str], "Items[Item]"],
    ) -> None:
        super().__init__(items)
        self.next_cursor = next_cursor
        self._following = following

    def all(self) -> Iterator[Item]:
        """These items and all that follow, fetched as they are needed; what comes in meanwhile is not repeated."""
        page = self
        while True:
            yield from page
            if page.next_cursor is None:
                return
            page = page._following(page.next_cursor)
