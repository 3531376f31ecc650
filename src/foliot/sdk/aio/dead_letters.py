"""Runs that have used their attempts: looked through, let go on, given up."""

from collections.abc import Iterable
from typing import Any

from foliot.sdk import calls
from foliot.sdk.aio.connection import AsyncConnection
from foliot.sdk.aio.lasting import AsyncOperation
from foliot.sdk.aio.pages import AsyncItems
from foliot.sdk.protocol import Request


class AsyncDeadLetterCalls(AsyncConnection):
    async def dead_letters(self, **query: Any) -> AsyncItems[dict[str, Any]]:
        """Runs that have used their attempts, newest first: `job`, `error_class`, `text`, `since`, `until`, …"""
        return await self._page(dict, "dead-letters", **query)

    async def dead_letter(self, run: str) -> dict[str, Any]:
        """A dead letter with its payload, its error and its attempts (`executions`)."""
        return dict(await self.request(calls.get("dead-letters", run)))

    async def replay(self, runs: Iterable[str], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Let up to 1,000 dead letters go on, now: `runIds` were, `refused` were not, each with the `reason`."""
        return dict(await self.request(calls.decide("replay", runs, idempotency_key)))

    async def discard(self, runs: Iterable[str], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Give up to 1,000 dead letters up, now; the answer is as that of `replay`."""
        return dict(await self.request(calls.decide("discard", runs, idempotency_key)))

    async def replay_where(
        self,
        *,
        per_second: float | None = None,
        concurrency: int | None = None,
        name: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        **where: Any,
    ) -> AsyncOperation:
        """Let all dead letters go on for which `where` holds (as in `dead_letters`; all without), at a pace."""
        options = {"per_second": per_second, "concurrency": concurrency, "name": name, "dry_run": dry_run}
        return await self._swept(calls.sweep("replay", where, options, idempotency_key))

    async def discard_where(
        self, *, name: str | None = None, dry_run: bool = False, idempotency_key: str | None = None, **where: Any
    ) -> AsyncOperation:
        """Give all dead letters up for which `where` holds (as in `dead_letters`; all without)."""
        return await self._swept(calls.sweep("discard", where, {"name": name, "dry_run": dry_run}, idempotency_key))

    async def _swept(self, request: Request) -> AsyncOperation:
        return AsyncOperation((await self.request(request))["operation"], self)
