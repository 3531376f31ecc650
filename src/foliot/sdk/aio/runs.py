"""Runs: handed in, looked at, waited for, stopped."""

from collections.abc import Iterable
from typing import Any, Unpack

from foliot.sdk import calls, transaction
from foliot.sdk.aio.connection import AsyncConnection
from foliot.sdk.aio.lasting import AsyncRun
from foliot.sdk.aio.pages import AsyncItems
from foliot.sdk.calls import Delay
from foliot.sdk.fields import Handler, Moment, NewRun, Policy
from foliot.sdk.records import Record


class AsyncRunCalls(AsyncConnection):
    async def submit(
        self,
        handler: Handler,
        payload: Any = None,
        *,
        delay: Delay = None,
        at: Moment | None = None,
        idempotency_key: str | None = None,
        connection: Any = None,
        **policy: Unpack[Policy],
    ) -> AsyncRun:
        """Run a function or call an address once: now, after `delay`, or `at` an instant. On disk when this returns.

        With a `connection` to Foliot's database it is part of the transaction there: on disk when that commits.
        """
        request = calls.submit(handler, payload, delay, at, idempotency_key, policy)
        if connection is None:
            return AsyncRun({**await self.request(request), "status": "pending"}, self)
        run = await transaction.submit_async(self._access, connection, request)
        return AsyncRun({"runId": run, "status": "pending"}, self)

    async def submit_many(self, runs: Iterable[NewRun], *, idempotency_key: str | None = None) -> list[str]:
        """Run many things once, each from what `submit` takes; their ids, in order.

        Every 10,000 of them are one call, accepted all or none. With an `idempotency_key`, the same runs can be handed
        in again after a break, and none of them is twice.
        """
        ids: list[str] = []
        for request in calls.submit_many(runs, idempotency_key):
            ids += (await self.request(request))["runIds"]
        return ids

    async def get_run(self, run: str) -> AsyncRun:
        return AsyncRun(await self.request(calls.get("runs", run)), self)

    async def explain_run(self, run: str) -> Record:
        """Why a run does not start: `sentence`, `blocking`, `ahead`, `estimated_start`, and all `gates`."""
        return Record(await self.request(calls.get("runs", run, "explain")))

    async def wait(self, run: str, timeout: float = 300, *, check: bool = True) -> AsyncRun:  # noqa: ASYNC109 - both clients say so
        """Wait for a run's end, as its own `wait` does."""
        return await (await self.get_run(run)).wait(timeout, check=check)

    async def list_runs(self, **query: Any) -> AsyncItems[AsyncRun]:
        return await self._page(lambda values: AsyncRun(values, self), "runs", **query)

    async def list_runs_of_job(self, job: str, **query: Any) -> AsyncItems[AsyncRun]:
        """The runs of a job, newest first: `status`, `state`, `since`, `until`, `text`, `limit`."""
        return await self._page(lambda values: AsyncRun(values, self), "jobs", job, "runs", **query)

    async def cancel_run(self, run: str) -> AsyncRun:
        """End a run that waits, or ask for the end of one that runs: it is over by `stops_by`."""
        return AsyncRun(await self.request(calls.cancel_run(run)), self)

    async def retry_run(self, run: str) -> AsyncRun:
        """Let a run that has used its attempts go on."""
        return AsyncRun(await self.request(calls.retry_run(run)), self)

    async def list_attempts(self, run: str, **query: Any) -> AsyncItems[dict[str, Any]]:
        """The attempts of a run, newest first."""
        return await self._page(dict, "runs", run, "attempts", **query)

    async def list_transitions(self, run: str, **query: Any) -> AsyncItems[dict[str, Any]]:
        """What happened to a run, and the state that each step left it in."""
        return await self._page(dict, "runs", run, "transitions", **query)

    async def get_graph(self, run: str) -> Record:
        """The graph that a run is part of: `nodes` with their states, `edges`, and how it stands as a whole."""
        return Record(await self.request(calls.get("runs", run, "graph")))

    async def cancel_graph(self, run: str) -> Record:
        """Cancel the graph that a run is part of: what waits ends, what runs is asked to stop."""
        return Record(await self.request(calls.cancel_graph(run)))
