"""`H` in a cron expression: numbers hashed from a job's own name, so that many jobs spread out and each stays put."""

import hashlib
import re
from types import MappingProxyType
from typing import Final

from foliot.domain.errors import InvalidField
from foliot.domain.expression import FIELDS, canonical_term

# The 29th and later do not come in every month.
_RANGES: Final = MappingProxyType(
    {
        "second": (0, 59),
        "minute": (0, 59),
        "hour": (0, 23),
        "day-of-month": (1, 28),
        "month": (1, 12),
        "day-of-week": (0, 6),
    }
)
_WIDEST: Final = MappingProxyType({**_RANGES, "day-of-month": (1, 31), "day-of-week": (0, 7)})
_HASHED: Final = re.compile(r"H(?:\((\d{1,2})-(\d{1,2})\))?(?:/(\d{1,2}))?", re.ASCII)


def is_hashed(expression: str) -> bool:
    """Whether any term of the expression is an `H`."""
    return re.search(r"(?:^|[\s,])H(?![A-Z])", expression.upper()) is not None


def spread(expression: str, seed: str, field: str = "cronExpression") -> str:
    """Replace each `H` by what the seed and the name of its field hash to; the same for ever.

    `H` is one number of the field's range, `H(0-29)` one of these, `H/15` every 15th from a hashed beginning on,
    `H(5-50)/10` the same within bounds.
    """
    words = expression.upper().split()
    if len(words) not in (5, 6):
        return expression  # refused where it is read
    names = FIELDS[-len(words) :]
    return " ".join(
        ",".join(_term(name, term, seed, field) if term.startswith("H") else term for term in word.split(","))
        for name, word in zip(names, words, strict=True)
    )


def _term(name: str, written: str, seed: str, field: str) -> str:
    match = _HASHED.fullmatch(canonical_term(name, written)) if written.isascii() else None
    if match is None:
        raise _refused(field, name, written)
    (low, high), (least, most) = _RANGES[name], _WIDEST[name]
    if match[1]:
        low, high = int(match[1]), int(match[2])
    size, step = high - low + 1, int(match[3] or 0)
    if not least <= low <= high <= most or (match[3] and not 1 <= step <= size):
        raise _refused(field, name, written)
    if step == 1 and not match[1]:
        return "*"
    first = low + _hash(seed, name) % (step or size)
    return f"{first}-{high}/{step}" if step and first + step <= high else str(first)


def _hash(seed: str, name: str) -> int:
    """Another number for each field, so that jobs of the same minute are not jobs of the same hour."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{name}".encode()).digest()[:8], "big")


def _refused(field: str, name: str, term: str) -> InvalidField:
    low, high = _WIDEST[name]
    hint = f"H, H(a-b), H/n or H(a-b)/n within {low}-{high}; ranges run upwards"
    return InvalidField(field, f"the {name} field {term[:40]!r} is not understood", hint)
