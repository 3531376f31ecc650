"""How to go about a run that was in the hands of a worker when that worker died.

A worker that dies takes hundreds of runs along, and at most one of them is to blame. Each of them carries a *mark*:

| mark | what is known | how it is run |
|---|---|---|
| 0 | nothing | as usual |
| -1 | a worker that held it died, and nobody knows whether it had begun | as usual, but noted before it begins |
| 1 | a worker died while it ran: as likely as not, for reasons of its own | as usual, but noted before it begins |
| 2 and more | it was there each time: a suspect | alone, in a process of its own |

So whoever kills a worker moves on by one row, each time, however quickly it does it: after three deaths at most it runs
alone, and kills nobody but itself. Whoever was only beside it runs alone too, and ends well.
"""

from enum import Enum, auto
from typing import Final

SUSPICIOUS: Final = 2
"""Deaths from which on a run is a suspect. One death is, as a rule, an operator's or the machine's doing: if it were
enough, the thousand runs of a killed worker would need a thousand processes."""
CRASHES_ALLOWED: Final = 3
"""Deaths of its own process, running alone, after which a run is quarantined as a dead letter (by `conclude`)."""


class Manner(Enum):
    USUAL = auto()
    NOTED = auto()
    ALONE = auto()


def manner(mark: int) -> Manner:
    if mark == 0:
        return Manner.USUAL
    return Manner.NOTED if mark < SUSPICIOUS else Manner.ALONE


def deaths(mark: int) -> int:
    """How many attempts were lost with their workers: these use up no retry."""
    return max(mark, 0)


def mark_after_death(mark: int, *, begun: bool) -> int:
    """What a run carries after its worker died. (`reap` says the same in SQL.)"""
    if begun:
        return deaths(mark) + 1
    return -1 if mark == 0 else mark
