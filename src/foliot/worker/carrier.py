"""The way to work through SQL: three connections, for claims, for settlements, and for the lease."""

from collections.abc import Callable, Sequence
from datetime import datetime

from foliot.domain.states import State
from foliot.kit.signals import READY
from foliot.store import dispatch, fleet
from foliot.store.database import Connection, Line
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.jobs import fetch_names
from foliot.store.specs import StoredSpec, ensure_lanes, fetch_specs


class SqlCarrier:
    """Implements `port.Carrier` for a worker that may speak to the database."""

    def __init__(self, line: Callable[..., Line], worker: int, name: str) -> None:
        self._worker = worker
        self._name = name
        self._claims = line()
        self._settlements = line()
        self._lease = line(statement_timeout="5s")
        self._listening: Connection | None = None

    async def register(self, queues: Sequence[str], groups: Sequence[str]) -> dict[int, str]:
        await fleet.register(self._lease, self._worker, self._name)
        return await ensure_lanes(self._claims, list(queues), list(groups))

    async def claim(
        self, number: int, lanes: Sequence[int], marks: Sequence[int], most: int, portions: Sequence[int]
    ) -> list[Claimed]:
        return await dispatch.claim(self._claims, self._worker, number, lanes, marks, most, portions)

    async def strays(self, known: Sequence[int]) -> list[Claimed]:
        return await dispatch.strays(self._claims, self._worker, known)

    async def specs(self, ids: Sequence[int]) -> dict[int, StoredSpec]:
        return await fetch_specs(self._claims, list(ids))

    async def job_names(self, jobs: Sequence[int]) -> dict[int, str]:
        return await fetch_names(self._claims, jobs)

    async def settle(self, batch: Sequence[Settlement]) -> list[Settlement]:
        successes = [each for each in batch if each.outcome.state is State.SUCCEEDED]
        others = [each for each in batch if each.outcome.state is not State.SUCCEEDED]
        lost: list[Settlement] = []
        if successes and await dispatch.settle(self._settlements, self._worker, successes) < len(successes):
            lost += await self._lost(successes)
        if others and await dispatch.conclude(self._settlements, self._worker, others) < len(others):
            lost += await self._lost(others)
        return lost

    async def _lost(self, batch: Sequence[Settlement]) -> list[Settlement]:
        """Those that are not on record as ours. A repeated settle finds its own rows there: that is no loss."""
        ours = await dispatch.settled(self._settlements, self._worker, batch)
        return [each for each in batch if (each.run.id, each.run.fence) not in ours]

    async def note_started(self, begun: Sequence[tuple[Claimed, datetime]]) -> None:
        await dispatch.note_started(self._settlements, self._worker, begun)

    async def forget(self, fences: Sequence[int]) -> None:
        await dispatch.forget(self._settlements, self._worker, fences)

    async def publish(self, highest: dict[int, int]) -> None:
        await dispatch.publish(self._claims, highest)

    async def beat(self) -> bool:
        return await fleet.beat(self._lease, self._worker)

    async def listen(self, wake: Callable[[], None]) -> None:
        connection = await self._lease.connection()
        if connection is not self._listening:
            await connection.add_listener(READY, lambda *_: wake())
            self._listening = connection

    def hurry(self) -> None:
        """Nothing to do: a claim through SQL waits for nobody."""

    async def leave(self) -> None:
        await fleet.leave(self._lease, self._worker)

    async def close(self) -> None:
        for line in (self._claims, self._settlements, self._lease):
            await line.close()
