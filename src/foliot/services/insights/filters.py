"""What a list is narrowed down to, and where a page of it begins."""

from typing import Final

from foliot.domain.errors import InvalidField, one_of
from foliot.domain.ids import HIGHEST
from foliot.domain.job import Kind
from foliot.domain.states import State, Status, states_of
from foliot.wire.pages import id_below, strange_cursor

_KINDS: Final = {kind.word: kind for kind in Kind}
_JOB_STATUSES: Final = frozenset(Status) - {Status.SKIPPED, Status.MISSED}
_WORDS: Final = frozenset({*Status, *(state.word for state in State)}) - {Status.PAUSED}
"""Of runs: coarse and fine."""


def job_status(status: str | None) -> str | None:
    if status is not None and status not in _JOB_STATUSES:
        raise InvalidField("status", f"no job has the status {status[:40]!r}", one_of(_JOB_STATUSES))
    return status


def kind_of(schedule_type: str | None) -> Kind | None:
    if schedule_type is None:
        return None
    if schedule_type not in _KINDS:
        raise InvalidField("scheduleType", f"{schedule_type[:40]!r} is none", one_of(_KINDS))
    return _KINDS[schedule_type]


def labels_of(label: str | None) -> dict[str, str] | None:
    if label is None:
        return None
    name, equals, value = label.partition("=")
    if not equals:
        raise InvalidField("label", "is not name=value", "for example label=team=growth")
    return {name: value}


def states_asked(status: str | None, state: str | None) -> list[int] | None:
    chosen: frozenset[State] | None = None
    for field, word in (("status", status), ("state", state)):
        if word is not None:
            found = states_of(word)
            if not found:
                raise InvalidField(field, f"no run has the {field} {word[:40]!r}", one_of(_WORDS))
            chosen = found if chosen is None else chosen & found
    return None if chosen is None else sorted(chosen)


def attempt_below(cursor: str | None) -> tuple[int, int]:
    """As `id_below`, of a run and the fence of an attempt."""
    if cursor is None:
        return HIGHEST, 0
    run, _, fence = cursor.partition(".")
    if not (fence.isascii() and fence.isdigit() and len(fence) < 19):
        raise strange_cursor()
    return id_below(run), int(fence)
