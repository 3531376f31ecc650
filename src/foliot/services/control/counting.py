"""What quotas count of jobs; see `domain/terms.py`."""

from collections.abc import Sequence

from foliot.domain.job import Draft, Kind
from foliot.store.reading import JobRow


def counted(drafts: Sequence[Draft]) -> dict[str, int]:
    """How many of each these are."""
    kinds = [draft.kind for draft in drafts]
    return {"jobs": len(kinds) - kinds.count(Kind.ONE_TIME), "schedules": kinds.count(Kind.RECURRING)}


def counted_more(before: JobRow, draft: Draft) -> dict[str, int]:
    """What a job becomes that it was not; what gives something back is never refused."""
    was = {"jobs": int(before.kind != Kind.ONE_TIME), "schedules": int(before.kind == Kind.RECURRING)}
    return {what: max(0, count - was[what]) for what, count in counted([draft]).items()}
