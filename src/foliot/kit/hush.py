"""Keeps out of what this process tells what must not be told: secrets of the runs that are under way."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

Hide = Callable[[str], str]
_DEEPEST: Final = 10


class Hush:
    """Hides secrets for as long as somebody uses them."""

    def __init__(self) -> None:
        self._hiding: dict[int, Hide] = {}

    @contextmanager
    def using(self, hide: Hide) -> Iterator[None]:
        """Have every text pass through `hide` until the block ends."""
        place = id(hide)
        self._hiding[place] = hide
        try:
            yield
        finally:
            del self._hiding[place]

    def hide(self, text: str) -> str:
        for hide in [*self._hiding.values()]:
            text = hide(text)
        return text

    def hidden(self, value: Any, depth: int = 0) -> Any:
        """The same value, with secrets taken out of every text in it."""
        if not self._hiding or depth > _DEEPEST:
            return value
        match value:
            case str():
                return self.hide(value)
            case Mapping():
                return {key: self.hidden(part, depth + 1) for key, part in value.items()}
            case list() | tuple() | set() | frozenset():
                return [self.hidden(part, depth + 1) for part in value]
            case int() | float() | None:
                return value
            case _:
                return self.hide(str(value))


HUSH: Final = Hush()
"""This process's own, as its log is."""
