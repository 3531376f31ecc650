"""What a seed is simulated for."""

from enum import StrEnum
from typing import Final

LIVENESS_EVERY: Final = 4
"""Of so many seeds one is simulated for liveness."""


class Mode(StrEnum):
    SAFETY = "safety"  # anything may break, all is healed, nothing may be wrong
    LIVENESS = "liveness"  # what breaks stays broken; a healthy core must get everything done


def mode_of(seed: int, wanted: Mode | None) -> Mode:
    if wanted is not None:
        return wanted
    return Mode.LIVENESS if seed % LIVENESS_EVERY == 0 else Mode.SAFETY
