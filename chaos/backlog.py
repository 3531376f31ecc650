"""What was handed in and has not ended well yet: told one by one, so that nobody else's end can stand for it."""

from collections.abc import Iterable
from typing import Any, Final

from chaos.records import digest

GIVEN_UP: Final = 600.0
"""Seconds after which nobody waits for an end any more: it is a dead letter, or was discarded. In 67 minutes of chaos
all of 2,650,506 ended, each within 100 s."""


class Backlog:
    """Runs are told apart by their payloads, of which no two are alike; the ledger knows them by their digests."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._nobodys: set[str] = set()
        """Ends that nobody waited for: some come before the answer to the call, the others are few."""

    def __len__(self) -> int:
        return len(self._since)

    def hand_in(self, payloads: Iterable[Any], now: float) -> None:
        """Wait for these from now on, unless they have ended before their client was told that they are there."""
        for name in map(digest, payloads):
            if name in self._nobodys:
                self._nobodys.remove(name)
            else:
                self._since[name] = now

    def end(self, digests: Iterable[str], now: float) -> None:
        """Runs of these payloads have ended well, for the first time or again."""
        for name in digests:
            if self._since.pop(name, None) is None:
                self._nobodys.add(name)
        while (oldest := next(iter(self._since), None)) is not None and now - self._since[oldest] > GIVEN_UP:
            del self._since[oldest]
