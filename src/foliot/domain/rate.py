"""How much happens a second, of late."""

from math import exp
from typing import Final

MEMORY: Final = 0.25
"""Seconds after which what happened counts for a third."""


class Rate:
    """Counts what happens; the longer ago, the less it counts."""

    def __init__(self) -> None:
        self._rate = 0.0
        self._at = float("-inf")

    def saw(self, now: float, count: int) -> None:
        self._rate = self.a_second(now) + count / MEMORY
        self._at = now

    def a_second(self, now: float) -> float:
        return self._rate * exp(min(0.0, self._at - now) / MEMORY)
