"""The occurrence ledger of a job as tests read it."""

from typing import Any

from foliot.wire.ledger import OccurrenceView
from world import World


async def told_of(world: World, job: int, **query: Any) -> list[OccurrenceView]:
    """All pages, oldest first."""
    query = {"since": None, "until": None, "status": None, "limit": 7, "cursor": None, **query}
    found: list[OccurrenceView] = []
    while True:
        page = await world.ledger.occurrences(world.tenant, job, **query)
        found += page.items
        if page.next_cursor is None:
            return found[::-1]
        query["cursor"] = page.next_cursor
