"""Workers and queues."""

from typing import Any

from foliot.sdk import calls
from foliot.sdk.aio.connection import AsyncConnection
from foliot.sdk.aio.pages import AsyncItems
from foliot.sdk.records import Record


class AsyncFleetCalls(AsyncConnection):
    async def workers(self, **query: Any) -> AsyncItems[Record]:
        """Workers, newest first: what they offer and have in hand; `state` live, draining or dead."""
        return await self._page(Record, "workers", **query)

    async def drain_worker(self, worker: str) -> Record:
        """Have a worker claim nothing more, finish what it runs, and leave."""
        return Record(await self.request(calls.drain_worker(worker)))

    async def queues(self, **query: Any) -> AsyncItems[Record]:
        """Queues by name: what waits, how long, who serves it, what is paused."""
        return await self._page(Record, "queues", **query)

    async def pause_queue(self, queue: str) -> Record:
        """Have nothing of a queue start until it is resumed; `holds_by` of the answer says from when on."""
        return Record(await self.request(calls.hold_queue(queue, "pause")))

    async def resume_queue(self, queue: str) -> Record:
        return Record(await self.request(calls.hold_queue(queue, "resume")))
