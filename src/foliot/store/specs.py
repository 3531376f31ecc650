"""Specs and lanes: content-addressed, so that ten million runs share a few rows."""

import asyncio
from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from foliot.domain.fairness import Priority
from foliot.domain.labels import joined
from foliot.domain.spec import Spec
from foliot.kit.clock import Steady, steady
from foliot.kit.signals import FLEET
from foliot.store.database import Database, Line
from foliot.store.flows import Flow
from foliot.store.hints import notify

TENANTS_REMEMBERED: Final = 2.0
"""Seconds that the weights and limits of tenants are believed without asking again."""
USUAL: Final = (1, False)
"""The weight of most tenants, and whether they have a limit."""


class SpecRef(NamedTuple):
    """A stored spec, with what is needed to rank its runs."""

    id: int
    lane: int
    tenant: int
    priority: Priority
    weight: int
    limited: bool = False
    """Whether its runs go through admission: it has a limit, or its tenant has."""

    @property
    def flow(self) -> Flow:
        return Flow(self.lane, self.tenant, self.priority)


class SpecBook:
    """Finds or stores specs, and remembers what it found.

    Specs never change, so what it knows of them stays true. Weights and limits of tenants do: those it gives are no
    older than `TENANTS_REMEMBERED` seconds and one statement.
    """

    def __init__(self, database: Database | Line, clock: Steady = steady) -> None:
        self._database = database
        self._tenants = _Tenants(database, clock)
        self._known: dict[tuple[int, bytes], SpecRef] = {}

    async def intern(self, tenant: int, spec: Spec) -> SpecRef:
        known = self._known.get((tenant, spec.name))
        if known is None or self._tenants.is_old:
            (known,) = await self.intern_batch(tenant, [spec])
            return known
        return _as_of(known, *self._tenants.remembered(tenant))

    async def intern_batch(self, tenant: int, specs: Sequence[Spec]) -> list[SpecRef]:
        """For each spec where it is stored; equal ones are stored once."""
        names = [spec.name for spec in specs]
        found = {name: ref for name in names if (ref := self._known.get((tenant, name)))}
        if missing := {name: spec for name, spec in zip(names, specs, strict=True) if name not in found}:
            found |= await self._learn(tenant, missing)
        weight, limited = await self._tenants.of(tenant)
        if (weight, limited) == USUAL:
            return [found[name] for name in names]
        return [_as_of(found[name], weight, limited) for name in names]

    async def _learn(self, tenant: int, specs: dict[bytes, Spec]) -> dict[bytes, SpecRef]:
        rows = await self._database.fetch("find_specs", tenant, list(specs))
        if len(rows) < len(specs):
            await self._store(tenant, specs)
            # A statement of its own: it sees what a rival, for whom the insert waited, has stored.
            rows = await self._database.fetch("find_specs", tenant, list(specs))
        refs = {
            name: SpecRef(row["id"], row["lane"], tenant, specs[name].priority, 1, specs[name].limit is not None)
            for row in rows
            for name in [row["digest"]]
        }
        if len(self._known) > 100_000:
            self._known.clear()
        self._known.update({(tenant, name): ref for name, ref in refs.items()})
        return refs

    async def _store(self, tenant: int, specs: dict[bytes, Spec]) -> None:
        queues = [spec.queue for spec in specs.values()]
        groups = [spec.handler.group for spec in specs.values()]
        labels = [joined(spec.labels) for spec in specs.values()]
        await _make_lanes(self._database, queues, groups, labels)
        priorities, bodies = [spec.priority for spec in specs.values()], [spec.body() for spec in specs.values()]
        once = [spec.is_at_most_once for spec in specs.values()]
        limits = [spec.limit for spec in specs.values()]
        await self._database.fetch(
            "make_specs", tenant, list(specs), queues, groups, priorities, bodies, once, limits, labels
        )


class _Tenants:
    """One statement asks for all of them, so that a thousand tenants cost no more than one."""

    def __init__(self, database: Database | Line, clock: Steady) -> None:
        self._database = database
        self._clock = clock
        self._asked = float("-inf")
        self._unusual: dict[int, tuple[int, bool]] = {}
        self._turn = asyncio.Lock()

    async def of(self, tenant: int) -> tuple[int, bool]:
        if self.is_old:
            async with self._turn:
                if self.is_old:
                    await self._ask()
        return self.remembered(tenant)

    def remembered(self, tenant: int) -> tuple[int, bool]:
        return self._unusual.get(tenant, USUAL)

    @property
    def is_old(self) -> bool:
        return self._clock() - self._asked >= TENANTS_REMEMBERED

    async def _ask(self) -> None:
        asked = self._clock()
        rows = await self._database.fetch("unusual_tenants")
        self._unusual = {row["id"]: (row["weight"], row["limited"]) for row in rows}
        self._asked = asked


def _as_of(ref: SpecRef, weight: int, limited: bool) -> SpecRef:
    if (weight, limited) == USUAL:
        return ref
    return ref._replace(weight=weight, limited=ref.limited or limited)


async def _make_lanes(database: Database | Line, queues: list[str], groups: list[str], labels: list[str]) -> None:
    if any(row["is_news"] for row in await database.fetch("make_lanes", queues, groups, labels)):
        await notify(database, [FLEET])


async def ensure_lanes(line: Line, queues: list[str], groups: list[str], labels: Sequence[str] = ()) -> dict[int, str]:
    """The lanes of these queues and handler groups, every pairing: ids, each with its queue.

    Of a worker that carries labels, those that require none of them and those that require all. So what it carries can
    be read from the lanes that it serves; lanes that require some it learns of as they come (`fleet.widen`).
    """
    required = sorted({"", joined(labels)})
    found = await line.fetch("find_lanes", queues, groups, required)
    if len(found) < len(set(queues)) * len(set(groups)) * len(required):
        await _make_lanes(line, *map(list, zip(*product(queues, groups, required), strict=True)))
        found = await line.fetch("find_lanes", queues, groups, required)
    return {row["id"]: row["queue"] for row in found}


_REFERS: Final = b'{"$secret":'


class StoredSpec(NamedTuple):
    lane: int
    spec: Spec
    tenant: str = ""
    """Whose it is, by name."""
    signing: bytes = b""
    """What calls of its handler are signed with, if it is one that is called over HTTP."""
    refers: bool = False
    """Whether its handler refers to secrets."""

    @classmethod
    def read(cls, lane: int, body: bytes, tenant: str, signing: bytes) -> "StoredSpec":
        return cls(lane, Spec.parse(body), tenant, signing, _REFERS in body)


async def fetch_specs(line: Line, ids: list[int]) -> dict[int, StoredSpec]:
    rows = await line.fetch("fetch_specs", ids)
    return {row["id"]: StoredSpec.read(row["lane"], row["body"], row["tenant"], row["signing"]) for row in rows}
