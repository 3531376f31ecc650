"""How much a transaction takes on, so that it stays short on any machine: edits wait for it, and give up soon."""

from typing import Final

LONGEST: Final = 0.1
"""Seconds that a transaction may last which others wait for."""
LONG: Final = 0.7 * LONGEST
"""Seconds after which the next takes on less."""
QUICK: Final = 0.5 * LONGEST
"""Seconds within which the next may take on more."""
LEAST: Final = 1 / 4
"""Of the largest portion. What is slow with so little is slow by itself; with less there would only be more of it."""
STEP: Final = 1 / 10
"""Of the largest portion."""


class Portion:
    """Halved by what took long, and grown step by step: one stall costs a few small transactions, no more.

    It begins small, like one after stalls: when a process has just begun, the disk has to be asked for everything.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = self._least = max(1, round(most * LEAST))
        self._step = max(1, round(most * STEP))

    def took(self, amount: int, seconds: float) -> None:
        """So much at once took so long. That less than a portion was quick says nothing of a larger one."""
        if seconds > LONG:
            self.size = max(self._least, min(self.size, amount) // 2)
        elif seconds < QUICK and amount >= self.size:
            self.size = min(self._most, self.size + self._step)
