"""Weights and backlogs as tests speak of them."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from foliot.services.rerank import Reranker
from foliot.services.tenants import Tenants
from foliot.store import dispatch
from foliot.store.specs import SpecBook
from world import Hand, World

AT_ONCE = timedelta()
"""For tests in which nobody is about to insert what was ranked before."""


async def weigh(world: World, weight: int, name: str = "acme") -> None:
    """Give a tenant another weight, and let submissions know of it."""
    await Tenants(world.database).set_weight(name, weight)
    world.specs = SpecBook(world.database)


@asynccontextmanager
async def reranker(world: World, landing: timedelta = AT_ONCE, page: int = 50) -> AsyncIterator[Reranker]:
    duty = Reranker(world.database, landing, page)
    try:
        yield duty
    finally:
        await duty.close()


async def rank_anew(world: World, **options: Any) -> None:
    """Move until nothing is on the move any more."""
    async with reranker(world, **options) as duty:
        for _ in range(1_000):
            if not await world.count("rerank"):
                return
            await duty.run_once()
    raise AssertionError("still on the move")


async def waiting(world: World, tenant: int | None = None) -> list[int]:
    """The runs of a tenant that wait, in the order in which they will be claimed; both their ranks agree."""
    rows = await world.sql(
        "SELECT run.id, run.rank, ready.rank AS place FROM ready JOIN run ON run.id = ready.run"
        " WHERE run.tenant = $1 ORDER BY ready.rank",
        tenant or world.tenant,
    )
    assert all(row["rank"] == row["place"] for row in rows)
    return [row["id"] for row in rows]


async def claim_and_publish(worker: Hand, most: int) -> list[dispatch.Claimed]:
    """As claimers do: take, and tell how far the lane has got."""
    taken = await worker.claim(most)
    if taken:
        await dispatch.publish(worker.line, {worker.lanes[0]: max(run.rank for run in taken)})
    return taken


def per_tenant(taken: list[dispatch.Claimed]) -> Counter[int]:
    return Counter(run.tenant for run in taken)
