"""How a command ended, as an answer to its attempt."""

import os
import signal
from types import MappingProxyType
from typing import Final

from foliot.domain.errorclass import CRASHED, classes_of, classes_of_exit
from foliot.domain.outcome import LONGEST_ERROR, Answer, Ending, Failure
from foliot.worker.child.child import CannotStart
from foliot.worker.child.fate import Fate

_WHY: Final = MappingProxyType(
    {
        int(signal.SIGXCPU): ": it had used up its processor time",
        int(signal.SIGXFSZ): ": it wrote a larger file than it may",
    }
)
_ROOM_FOR_HEAD: Final = 300
"""Characters of an error for what we say ourselves."""


def verdict(fate: Fate, text: str, cut: int) -> Answer:
    """Status 0 is success, every other a failure; `text` is the end of what the command wrote, without `cut` bytes."""
    if fate.lapsed:
        return Failure("this worker stood still for its whole lease", ending=Ending.RELEASED)
    if fate.status is None:
        return Failure(f"its process {fate}", ending=Ending.RELEASED)
    if fate.status == 0:
        return None
    classes = (CRASHED,) if fate.signal else classes_of_exit(os.waitstatus_to_exitcode(fate.status))
    return Failure(error_of(f"the command {how(fate)}", text, cut), classes=classes)


def how(fate: Fate) -> str:
    """What follows "the command …"."""
    return f"{fate}{_WHY.get(fate.signal, '')}"


def error_of(head: str, text: str, cut: int) -> str:
    """What is kept of a failure: the head, how much is cut, and the end of what the command wrote."""
    text = text.strip("\n")
    room = LONGEST_ERROR - _ROOM_FOR_HEAD
    if len(text) > room:
        cut += len(text[:-room].encode(errors="replace"))
        text = text[-room:]
    lines = [head, f"[{cut:,} bytes before this are cut]" if cut else "", text]
    return "\n".join(filter(None, lines))


def not_started(name: str, error: CannotStart) -> Failure:
    """The kinds of error are those of Python's own: a rule may speak of FileNotFoundError."""
    kind = type(OSError(error.errno, "")) if error.errno and not error.part else CannotStart
    return Failure(f"{name}: {error.message}", classes=classes_of(kind))
