# Written by `make sdk` from sdk/aio/fleet.py: change that.
"""Workers and queues."""

from typing import Any

from foliot.sdk import calls
from foliot.sdk.client.connection import Connection
from foliot.sdk.client.pages import Items
from foliot.sdk.records import Record


class FleetCalls(Connection):
    def workers(self, **query: Any) -> Items[Record]:
        """Workers, newest first: what they offer and have in hand; `state` live, draining or dead."""
        return self._page(Record, "workers", **query)

    def drain_worker(self, worker: str) -> Record:
        """Have a worker claim nothing more, finish what it runs, and leave."""
        return Record(self.request(calls.drain_worker(worker)))

    def queues(self, **query: Any) -> Items[Record]:
        """Queues by name: what waits, how long, who serves it, what is paused."""
        return self._page(Record, "queues", **query)

    def pause_queue(self, queue: str) -> Record:
        """Have nothing of a queue start until it is resumed; `holds_by` of the answer says from when on."""
        return Record(self.request(calls.hold_queue(queue, "pause")))

    def resume_queue(self, queue: str) -> Record:
        return Record(self.request(calls.hold_queue(queue, "resume")))
