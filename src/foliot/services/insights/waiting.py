"""What a run waits for, in words."""

from collections.abc import Sequence
from typing import Final

from foliot.domain.ids import encode
from foliot.domain.states import State
from foliot.store.graphs import Hindrance
from foliot.store.reading import RunRow
from foliot.wire.limits import LINES, BlockedBy, turn_of

_NAMED: Final = 3


def waiting_for(row: RunRow) -> str | None:
    if row.until is not None:
        return "its handler, which went on outside, to say how it ended"
    match row.waits:
        case "pause":
            return f"queue {row.spec.queue!r} to be resumed"
        case "parents":
            return "its parents"
        case "worker":
            carrying = f" and carries {', '.join(row.spec.labels)}" if row.spec.labels else ""
            offered = f"{row.spec.handler.group!r} on queue {row.spec.queue!r}"
            return f"a worker: none that lives offers {offered}{carrying}"
        case _ if blocked := blocked_by(row):
            return turn_of(blocked, row.spec.limit_path, has_job=row.job is not None)
        case _:
            return "its job to be resumed" if row.state == State.BLOCKED else None


def parents_words(hindrances: Sequence[Hindrance]) -> str:
    """What a run waits for of its graph: what has failed for good, or else what has yet to end."""
    dead = [each for each in hindrances if each.dead]
    named = [f"{encode('run', each.run)} ({each.name})" for each in (dead or hindrances)[:_NAMED]]
    told = ", ".join(named) + (f" and {more} more" if (more := len(dead or hindrances) - len(named)) > 0 else "")
    if not dead:
        return f"its parents: {told}"
    return f"{told}, which failed for good: replay it to go on, or discard it to give this run up"


def blocked_by(row: RunRow) -> BlockedBy | None:
    if row.line is None or row.capacity is None:
        return None
    return BlockedBy(line=LINES[row.line], limit=row.capacity, going=row.going, ahead=row.ahead)
