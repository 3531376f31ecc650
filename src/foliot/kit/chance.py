"""Where dice are thrown: everything that needs chance is handed one of these."""

import random
from collections.abc import Callable

Chance = Callable[[], float]
"""Gives a number in [0, 1)."""


def fair() -> Chance:
    return random.Random().random  # noqa: S311 - spreads retries; guards nothing
