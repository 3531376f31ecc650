"""How commands end: the one table of exit codes, from which the reference is written too."""

from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Code(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    DRAINED = 3
    DIFFERS = 4
    UNREACHABLE = 5


MEANINGS: Final = MappingProxyType(
    {
        Code.DONE: "It worked.",
        Code.FAILED: (
            "It did not: the call was refused, what was asked for is not there, what was waited for did not complete, "
            "or `doctor` and `audit verify` found something wrong. The message says what to do."
        ),
        Code.USAGE: "The command line or a setting was not understood; nothing was done.",
        Code.DRAINED: "A supervised worker was drained: it is not to be started again.",
        Code.DIFFERS: "`apply --dry-run` found something to change.",
        Code.UNREACHABLE: "Nothing answered: no Foliot, or no database, is known here or can be reached.",
    }
)
