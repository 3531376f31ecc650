"""Work on many runs that is asked for once: back-fills, and how operations go on."""

from typing import Any

from foliot.sdk import calls
from foliot.sdk.aio.connection import AsyncConnection
from foliot.sdk.aio.lasting import AsyncOperation
from foliot.sdk.aio.pages import AsyncItems
from foliot.sdk.fields import Moment


class AsyncOperationCalls(AsyncConnection):
    async def backfill(
        self,
        job: str,
        start: Moment,
        until: Moment,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> AsyncOperation:
        """Run a job's instants from `start` to `until`: `concurrency`, `order`, `reprocess`, `name`, `dry_run`."""
        request = calls.backfill(job, start, until, idempotency_key, fields)
        return AsyncOperation(await self.request(request), self)

    async def operation(self, operation: str) -> AsyncOperation:
        return AsyncOperation(await self.request(calls.get("operations", operation)), self)

    async def operations(self, **query: Any) -> AsyncItems[AsyncOperation]:
        return await self._page(lambda values: AsyncOperation(values, self), "operations", **query)

    async def cancel_operation(self, operation: str) -> AsyncOperation:
        """Hand out nothing more and end what waits; what runs goes on."""
        return AsyncOperation(await self.request(calls.cancel_operation(operation)), self)
