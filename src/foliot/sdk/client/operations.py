# Written by `make sdk` from sdk/aio/operations.py: change that.
"""Work on many runs that is asked for once: back-fills, and how operations go on."""

from typing import Any

from foliot.sdk import calls
from foliot.sdk.client.connection import Connection
from foliot.sdk.client.lasting import Operation
from foliot.sdk.client.pages import Items
from foliot.sdk.fields import Moment


class OperationCalls(Connection):
    def backfill(
        self,
        job: str,
        start: Moment,
        until: Moment,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Operation:
        """Run a job's instants from `start` to `until`: `concurrency`, `order`, `reprocess`, `name`, `dry_run`."""
        request = calls.backfill(job, start, until, idempotency_key, fields)
        return Operation(self.request(request), self)

    def operation(self, operation: str) -> Operation:
        return Operation(self.request(calls.get("operations", operation)), self)

    def operations(self, **query: Any) -> Items[Operation]:
        return self._page(lambda values: Operation(values, self), "operations", **query)

    def cancel_operation(self, operation: str) -> Operation:
        """Hand out nothing more and end what waits; what runs goes on."""
        return Operation(self.request(calls.cancel_operation(operation)), self)
