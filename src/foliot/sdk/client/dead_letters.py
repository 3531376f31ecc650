# Written by `make sdk` from sdk/aio/dead_letters.py: change that.
"""Runs that have used their attempts: looked through, let go on, given up."""

from collections.abc import Iterable
from typing import Any

from foliot.sdk import calls
from foliot.sdk.client.connection import Connection
from foliot.sdk.client.lasting import Operation
from foliot.sdk.client.pages import Items
from foliot.sdk.protocol import Request


class DeadLetterCalls(Connection):
    def dead_letters(self, **query: Any) -> Items[dict[str, Any]]:
        """Runs that have used their attempts, newest first: `job`, `error_class`, `text`, `since`, `until`, …"""
        return self._page(dict, "dead-letters", **query)

    def dead_letter(self, run: str) -> dict[str, Any]:
        """A dead letter with its payload, its error and its attempts (`executions`)."""
        return dict(self.request(calls.get("dead-letters", run)))

    def replay(self, runs: Iterable[str], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Let up to 1,000 dead letters go on, now: `runIds` were, `refused` were not, each with the `reason`."""
        return dict(self.request(calls.decide("replay", runs, idempotency_key)))

    def discard(self, runs: Iterable[str], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Give up to 1,000 dead letters up, now; the answer is as that of `replay`."""
        return dict(self.request(calls.decide("discard", runs, idempotency_key)))

    def replay_where(
        self,
        *,
        per_second: float | None = None,
        concurrency: int | None = None,
        name: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        **where: Any,
    ) -> Operation:
        """Let all dead letters go on for which `where` holds (as in `dead_letters`; all without), at a pace."""
        options = {"per_second": per_second, "concurrency": concurrency, "name": name, "dry_run": dry_run}
        return self._swept(calls.sweep("replay", where, options, idempotency_key))

    def discard_where(
        self, *, name: str | None = None, dry_run: bool = False, idempotency_key: str | None = None, **where: Any
    ) -> Operation:
        """Give all dead letters up for which `where` holds (as in `dead_letters`; all without)."""
        return self._swept(calls.sweep("discard", where, {"name": name, "dry_run": dry_run}, idempotency_key))

    def _swept(self, request: Request) -> Operation:
        return Operation(self.request(request)["operation"], self)
