# Written by `make sdk` from sdk/aio/runs.py: change that.
"""Runs: handed in, looked at, waited for, stopped."""

from collections.abc import Iterable
from typing import Any, Unpack

from foliot.sdk import calls, transaction
from foliot.sdk.calls import Delay
from foliot.sdk.client.connection import Connection
from foliot.sdk.client.lasting import Run
from foliot.sdk.client.pages import Items
from foliot.sdk.fields import Handler, Moment, NewRun, Policy
from foliot.sdk.records import Record


class RunCalls(Connection):
    def submit(
        self,
        handler: Handler,
        payload: Any = None,
        *,
        delay: Delay = None,
        at: Moment | None = None,
        idempotency_key: str | None = None,
        connection: Any = None,
        **policy: Unpack[Policy],
    ) -> Run:
        """Run a function or call an address once: now, after `delay`, or `at` an instant. On disk when this returns.

        With a `connection` to Foliot's database it is part of the transaction there: on disk when that commits.
        """
        request = calls.submit(handler, payload, delay, at, idempotency_key, policy)
        if connection is None:
            return Run({**self.request(request), "status": "pending"}, self)
        run = transaction.submit(self._access, connection, request)
        return Run({"runId": run, "status": "pending"}, self)

    def submit_many(self, runs: Iterable[NewRun], *, idempotency_key: str | None = None) -> list[str]:
        """Run many things once, each from what `submit` takes; their ids, in order.

        Every 10,000 of them are one call, accepted all or none. With an `idempotency_key`, the same runs can be handed
        in again after a break, and none of them is twice.
        """
        ids: list[str] = []
        for request in calls.submit_many(runs, idempotency_key):
            ids += self.request(request)["runIds"]
        return ids

    def get_run(self, run: str) -> Run:
        return Run(self.request(calls.get("runs", run)), self)

    def explain_run(self, run: str) -> Record:
        """Why a run does not start: `sentence`, `blocking`, `ahead`, `estimated_start`, and all `gates`."""
        return Record(self.request(calls.get("runs", run, "explain")))

    def wait(self, run: str, timeout: float = 300, *, check: bool = True) -> Run:
        """Wait for a run's end, as its own `wait` does."""
        return self.get_run(run).wait(timeout, check=check)

    def list_runs(self, **query: Any) -> Items[Run]:
        return self._page(lambda values: Run(values, self), "runs", **query)

    def list_runs_of_job(self, job: str, **query: Any) -> Items[Run]:
        """The runs of a job, newest first: `status`, `state`, `since`, `until`, `text`, `limit`."""
        return self._page(lambda values: Run(values, self), "jobs", job, "runs", **query)

    def cancel_run(self, run: str) -> Run:
        """End a run that waits, or ask for the end of one that runs: it is over by `stops_by`."""
        return Run(self.request(calls.cancel_run(run)), self)

    def retry_run(self, run: str) -> Run:
        """Let a run that has used its attempts go on."""
        return Run(self.request(calls.retry_run(run)), self)

    def list_attempts(self, run: str, **query: Any) -> Items[dict[str, Any]]:
        """The attempts of a run, newest first."""
        return self._page(dict, "runs", run, "attempts", **query)

    def list_transitions(self, run: str, **query: Any) -> Items[dict[str, Any]]:
        """What happened to a run, and the state that each step left it in."""
        return self._page(dict, "runs", run, "transitions", **query)

    def get_graph(self, run: str) -> Record:
        """The graph that a run is part of: `nodes` with their states, `edges`, and how it stands as a whole."""
        return Record(self.request(calls.get("runs", run, "graph")))

    def cancel_graph(self, run: str) -> Record:
        """Cancel the graph that a run is part of: what waits ends, what runs is asked to stop."""
        return Record(self.request(calls.cancel_graph(run)))
