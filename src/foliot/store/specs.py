"""Specs and lanes: content-addressed, so that ten million runs share a few rows."""

from typing import NamedTuple

from foliot.domain.fairness import Priority
from foliot.domain.spec import Spec, digest
from foliot.store.database import Database, Line
from foliot.store.dispatch import Flow


class SpecRef(NamedTuple):
    """A stored spec, with what is needed to rank its runs."""

    id: int
    lane: int
    tenant: int
    priority: Priority
    weight: int

    @property
    def flow(self) -> Flow:
        return Flow(self.lane, self.tenant, self.priority)


class SpecBook:
    """Finds or stores specs, and remembers what it found. Specs never change, so what it knows stays true."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[int, bytes], SpecRef] = {}

    async def intern(self, tenant: int, spec: Spec) -> SpecRef:
        body = spec.body()
        name = (tenant, digest(body))
        if name not in self._known:
            if len(self._known) > 100_000:
                self._known.clear()
            row = await self._database.fetchrow(
                "intern_spec", tenant, name[1], spec.queue, spec.handler.group, spec.priority, body
            )
            if row is None:
                raise RuntimeError("a spec that was just stored cannot be found")
            self._known[name] = SpecRef(row["id"], row["lane"], tenant, spec.priority, row["weight"])
        return self._known[name]


async def ensure_lanes(line: Line, queues: list[str], groups: list[str]) -> list[int]:
    """Ids of the lanes of these queues and handler groups, every pairing."""
    found = await line.fetch("find_lanes", queues, groups)
    if len(found) < len(set(queues)) * len(set(groups)):
        await line.fetch("make_lanes", queues, groups)
        found = await line.fetch("find_lanes", queues, groups)
    return [row["id"] for row in found]


class StoredSpec(NamedTuple):
    lane: int
    spec: Spec


async def fetch_specs(line: Line, ids: list[int]) -> dict[int, StoredSpec]:
    rows = await line.fetch("fetch_specs", ids)
    return {row["id"]: StoredSpec(row["lane"], Spec.parse(row["body"])) for row in rows}
