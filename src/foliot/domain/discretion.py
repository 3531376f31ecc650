"""Keeps secrets of an attempt out of its answer: whoever was called may quote its call."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from foliot.domain.outcome import Answer, Failure, Returned, Snoozed
from foliot.domain.redaction import Redaction
from foliot.domain.result import is_small_json

_SECRET: Final = re.compile(r"auth|cookie|token|secret|(?<!idempotency-)key|pass|signature|credential", re.IGNORECASE)
"""In the names of headers whose values are nobody's business."""


def secrets_in(headers: Mapping[str, Any]) -> Iterator[str]:
    """Values of headers that must not be kept, whole and without the word before them (`Bearer`)."""
    for name, value in headers.items():
        if isinstance(value, str) and _SECRET.search(name):
            yield from (value, value.rpartition(" ")[2])


def hushed(answer: Answer, redaction: Redaction) -> Answer:
    """The answer without what the redaction knows. A result that is no JSON without it is not kept."""
    match answer:
        case Failure(error=error):
            return msgspec.structs.replace(answer, error=redaction.hide(error))
        case Snoozed(reason=reason):
            return msgspec.structs.replace(answer, reason=redaction.hide(reason))
        case Returned(result=result):
            said = redaction.hide(result.decode(errors="replace")).encode()
            return Returned(said) if is_small_json(said) else None
        case _:
            return answer
