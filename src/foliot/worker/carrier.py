"""The way to work through SQL: three connections, for claims, for settlements, and for the lease."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog

from foliot.domain.ids import encode
from foliot.domain.outcome import SUCCEEDED
from foliot.domain.seal import Voucher
from foliot.kit import telemetry
from foliot.kit.signals import FLEET, READY, Hints, recall_channel
from foliot.store import dispatch, fleet
from foliot.store import reports as store_reports
from foliot.store.database import Connection, Line
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.fleet import UNTOLD, About, Load, Standing
from foliot.store.hints import notify
from foliot.store.jobs import fetch_names
from foliot.store.left_lying import LeftLying
from foliot.store.outside import voucher_of
from foliot.store.reports import Report
from foliot.store.sealed import CHECKPOINT, opened_runs, sealed_endings, sealed_reports
from foliot.store.specs import StoredSpec, ensure_lanes, fetch_specs
from foliot.store.vault import NO_VAULT, Owner, Vault

log = structlog.get_logger("worker")

TIMED_EVERY: Final = 1.0
"""Seconds between two claims of a steady stream that are timed. In one that waits for work nobody can tell the waiting
from the claiming, so now and then the two are said apart: a round trip more, for one claim a second."""


class SqlCarrier:
    """Implements `port.Carrier` for a worker that may speak to the database."""

    def __init__(
        self,
        line: Callable[..., Line],
        worker: int,
        name: str,
        about: About = UNTOLD,
        vault: Callable[[Line], Vault] = lambda _: NO_VAULT,
    ) -> None:
        self._worker = worker
        self._name = name
        # Whatever a statement waits for, it is given up while the lease (15 s) still stands, and said again: a result
        # must not sit behind a connection that leads nowhere until others have taken over. A heartbeat gets two tries.
        self._claims = line(statement_timeout="10s")
        self._settlements = line(statement_timeout="10s", lock_timeout="200ms")
        self._lease = line(statement_timeout="3s")
        self._hints = Hints(partial(notify, self._settlements))
        self._left_lying = LeftLying(self._claims)
        self._vault = vault(self._settlements)
        self._timed = float("-inf")
        self._about = about
        self._lanes: list[int] = []
        self._has_labels = False
        self._listening: Connection | None = None
        self.voucher: Voucher | None = None

    async def run(self) -> None:
        """Tell others, until cancelled, of what became ready in their lanes. Without it they find it by polling."""
        await self._hints.run()

    async def register(
        self, queues: Sequence[str], groups: Sequence[str], labels: Sequence[str] = ()
    ) -> dict[int, str]:
        lanes = await ensure_lanes(self._claims, list(queues), list(groups), labels)
        await fleet.register(self._lease, self._worker, self._name, list(lanes), self._about)
        self._has_labels = bool(labels)
        if self._has_labels:
            lanes = await fleet.widen(self._lease, self._worker)
        self._lanes = list(lanes)
        self.voucher = await voucher_of(self._claims, self._worker)
        return lanes

    async def claim(
        self,
        number: int,
        lanes: Sequence[int],
        marks: Sequence[int],
        most: int,
        portions: Sequence[int],
        patience: timedelta = timedelta(),
    ) -> list[Claimed]:
        now = asyncio.get_running_loop().time
        if patience and now() - self._timed >= TIMED_EVERY:
            await dispatch.wait_for_work(self._claims, lanes, marks, patience)
            patience = timedelta()
        began = now()
        taken = await dispatch.claim(self._claims, self._worker, number, lanes, marks, most, portions, patience)
        if taken and not patience:
            self._timed = now()
            telemetry.CLAIM_SECONDS.observe(self._timed - began)
        return await opened_runs(self._vault, taken)

    async def strays(self, known: Sequence[int]) -> list[Claimed]:
        return await opened_runs(self._vault, await dispatch.strays(self._claims, self._worker, known))

    async def specs(self, ids: Sequence[int]) -> dict[int, StoredSpec]:
        return await fetch_specs(self._claims, list(ids))

    async def job_names(self, jobs: Sequence[int]) -> dict[int, str]:
        return await fetch_names(self._claims, jobs)

    async def settle(self, batch: Sequence[Settlement]) -> list[Settlement]:
        others = [each for each in batch if each.outcome is not SUCCEEDED]  # failed, or with something to keep
        successes = [each for each in batch if each.outcome is SUCCEEDED] if others else batch
        written = await sealed_endings(self._vault, others) if others else ()
        lost: list[Settlement] = []
        called: set[int] = set()
        told = self._settlements, self._worker
        if successes and await dispatch.settle(*told, successes, called.update) < len(successes):
            lost += await self._lost(successes)
        if others and await dispatch.conclude(*told, written, called.update) < len(others):
            lost += await self._lost(others)
        if not called.issubset(self._lanes):  # ours are looked into after each settle
            self._hints.give(READY)
        if results := [each for each in lost if each.outcome.ending.is_result]:
            kept = await sealed_endings(self._vault, results)
            await dispatch.keep_late_results(self._settlements, self._worker, kept)
        return lost

    async def _lost(self, batch: Sequence[Settlement]) -> list[Settlement]:
        """Those that are not on record as ours. A repeated settle finds its own rows there: that is no loss."""
        ours = await dispatch.settled(self._settlements, self._worker, batch)
        return [each for each in batch if (each.run.id, each.run.fence) not in ours]

    async def note_started(self, begun: Sequence[tuple[Claimed, datetime]]) -> set[tuple[int, int]]:
        ours = await dispatch.note_started(self._settlements, self._worker, begun)
        if others := [Settlement(run, at, SUCCEEDED) for run, at in begun if (run.id, run.fence) not in ours]:
            # A handler that has settled its run in a transaction of its own, and is not through, has lost nothing.
            ours |= await dispatch.settled(self._settlements, self._worker, others)
        return ours

    async def report(self, reports: Sequence[Report]) -> set[tuple[int, int]]:
        told = await sealed_reports(self._vault, reports)
        return await store_reports.report(self._settlements, self._worker, told)

    async def last_checkpoint(self, run: Claimed) -> bytes | None:
        state = await store_reports.last_checkpoint(self._settlements, self._worker, run.id, run.fence)
        return None if state is None else await self._vault.open(Owner(run.tenant, run.id), CHECKPOINT, state)

    async def secrets(self, run: Claimed, names: Sequence[str]) -> dict[str, str]:
        return await self._vault.secrets(run.tenant, names)

    async def forget(self, fences: Sequence[int]) -> None:
        await dispatch.forget(self._settlements, self._worker, fences)

    async def publish(self, highest: dict[int, int]) -> None:
        await dispatch.publish(self._claims, highest)

    async def promote(self) -> int:
        moved, refused = await self._left_lying.pick_up(asyncio.get_running_loop().time())
        for run, reason in refused.items():
            log.error("a run that was handed in cannot be run", run=encode("run", run), reason=reason)
        telemetry.RUNS_PROMOTED.inc(moved)
        return moved

    async def beat(self, load: Load) -> Standing | None:
        standing = await fleet.beat(self._lease, self._worker, self._lanes, load)
        if standing is None or not self._has_labels:
            return standing
        lanes = await fleet.widen(self._lease, self._worker)
        self._lanes = list(lanes)
        return standing._replace(lanes=lanes)

    async def listen(self, wake: Callable[[], None], news: Callable[[], None]) -> None:
        connection = await self._lease.connection()
        if connection is not self._listening:
            await connection.add_listener(READY, lambda *_: wake())
            for channel in (FLEET, recall_channel(self._worker)):
                await connection.add_listener(channel, lambda *_: news())
            self._listening = connection

    def hurry(self) -> None:
        """Nothing to do: a claim through SQL does not wait long."""

    async def leave(self) -> None:
        await fleet.leave(self._lease, self._worker)

    async def close(self) -> None:
        for line in (self._claims, self._settlements, self._lease):
            await line.close()
