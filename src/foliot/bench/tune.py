"""Which settings serve the raw floor best: many are tried briefly, the better ones again and for longer."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import product
from typing import Final

Setting = tuple[int, int]
"""Runs in a batch, and connections."""
SETTINGS: Final = tuple(product((200, 1_000, 2_000, 5_000), (1, 2, 4)))
ROUNDS: Final = ((4, 1 / 8), (2, 3 / 8))
"""How many go on after each round, and the share of a measurement's time that each try gets in it."""
SHORTEST: Final = 0.5
"""Seconds: what is shorter says nothing."""


async def finalists(
    measure: Callable[[Setting, float], Awaitable[float]], seconds: float, settings: Sequence[Setting] = SETTINGS
) -> list[Setting]:
    """Those that go on to be measured in full, the better one first. `seconds` is what a full measurement takes.

    More than one, because a short try on a busy machine is a guess: the floor is whichever of them then does best.
    """
    left = list(settings)
    for most, share in ROUNDS:
        rates = {setting: await measure(setting, max(seconds * share, SHORTEST)) for setting in left}
        left = sorted(left, key=lambda setting: rates[setting], reverse=True)[:most]
    return left
