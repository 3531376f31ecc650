"""What a run asks of its worker, and what a worker carries: labels, in one form however they were written."""

import re
from collections.abc import Iterable
from typing import Final

from foliot.domain.errors import InvalidField

MOST: Final = 8
"""Of a run, and of a worker: a lane is known by all that its runs require."""
_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_BETWEEN: Final = ","


def labels_of(words: Iterable[str], field: str) -> tuple[str, ...]:
    """Each once and in order, so that the same labels are the same lane; InvalidField names the one that is wrong."""
    words = [words] if isinstance(words, str) else list(words)
    for place, word in enumerate(words):
        if not _LABEL.fullmatch(word):
            hint = "lower-case letters, digits, '.', '_' and '-', at most 63"
            raise InvalidField(f"{field}[{place}]", f"{word[:40]!r} is not a label of a worker", hint)
    labels = tuple(sorted({*words}))
    if len(labels) > MOST:
        hint = "name only what tells workers apart; one label may stand for several things"
        raise InvalidField(field, f"more than {MOST} labels", hint)
    return labels


def joined(labels: Iterable[str]) -> str:
    """How a lane writes down what its runs require; nothing if they require nothing."""
    return _BETWEEN.join(labels)


def parted(text: str) -> tuple[str, ...]:
    """The labels of a lane."""
    return tuple(text.split(_BETWEEN)) if text else ()
