"""What kind of error ended an attempt, and which rule about retries speaks of it."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from foliot.domain.errors import InvalidField
from foliot.domain.retry import MOST_RETRIES, Backoff

TIMEOUT: Final = "timeout"
"""The attempt ran past its time-out."""
LOST: Final = "lost"
"""The worker died under the attempt. No rule speaks of it: it is no failure of the handler's."""
CRASHED: Final = "crashed"
"""The process of the attempt's own was killed, or ended without an answer."""
REFUSED: Final = "refused"
"""The target is one that handlers may not call. Nothing was sent to it."""
MOST_RULES: Final = 20
MOST_NAMES: Final = 20
"""In one rule."""
LONGEST_NAME: Final = 200
_MOST_BASES: Final = 30
_CLASS: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_STATUS: Final = re.compile(r"http:[1-5](\d\d|xx)")
_EXIT: Final = re.compile(r"exit:([1-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])")


class RetryRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What follows errors of these kinds, instead of what the job says in general. What is none stays as it is."""

    on: tuple[str, ...]
    never: bool = False
    max_retries: int | None = None
    backoff: Backoff | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.on) <= MOST_NAMES:
            raise InvalidField(
                "on", f"has {len(self.on)} names", f"1 to {MOST_NAMES}: of exceptions, http:503, exit:3, timeout"
            )
        for place, name in enumerate(self.on):
            _check(name, f"on[{place}]")
        if self.never and (self.max_retries is not None or self.backoff is not None):
            raise InvalidField("never", "stands beside maxRetries or backoff", "what is never retried needs neither")
        if self.max_retries is not None and not 0 <= self.max_retries <= MOST_RETRIES:
            raise InvalidField("maxRetries", f"must lie between 0 and {MOST_RETRIES:,}", "a number of retries")

    def speaks_of(self, classes: Sequence[str]) -> bool:
        return any(name in classes for name in self.on)


def first_match(rules: Sequence[RetryRule], classes: Sequence[str]) -> RetryRule | None:
    """The rule that decides about an error of these classes: the first that names one of them."""
    return next((rule for rule in rules if rule.speaks_of(classes)), None)


def classes_of(kind: type[BaseException], final: type[BaseException] = BaseException) -> tuple[str, ...]:
    """The names of an exception, the most telling first: its own with the module, then it and its bases without.

    `final` is the last base that is told.
    """
    bases = [each for each in kind.__mro__ if issubclass(each, final)]
    own = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    names = dict.fromkeys([own, *(each.__name__ for each in bases[:_MOST_BASES])])
    return tuple(name[:LONGEST_NAME] for name in names)


def classes_of_status(status: int) -> tuple[str, ...]:
    """The names of an HTTP answer: `http:503`, `http:5xx`."""
    return f"http:{status}", f"http:{status // 100}xx"


def classes_of_exit(code: int) -> tuple[str, ...]:
    """The name of a command's exit status that is not 0: `exit:3`."""
    return (f"exit:{code}",)


def _check(name: str, field: str) -> None:
    if name == TIMEOUT or _STATUS.fullmatch(name) or _EXIT.fullmatch(name):
        return
    if name.startswith("exit:"):
        raise InvalidField(field, f"{name[:40]!r} is no exit status of a failure", "exit:1 to exit:255")
    if name.startswith("http:"):
        raise InvalidField(
            field, f"{name[:40]!r} is no status of HTTP", "http:503 for one, http:5xx for all that begin so"
        )
    if len(name) > LONGEST_NAME or not _CLASS.fullmatch(name):
        hint = (
            "an exception's name such as ValueError or requests.exceptions.Timeout, http:503, http:5xx, exit:3, timeout"
        )
        raise InvalidField(field, f"{name[:40]!r} names no kind of error", hint)
