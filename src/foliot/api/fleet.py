"""Operations on workers and queues. They are shared by all tenants: calls for operators."""

import msgspec

from foliot.api.addressed import worker_id
from foliot.api.operation import Call, Operation, Reply
from foliot.api.paging import Limit, PageQuery
from foliot.wire.fleet import QueueView, WorkerView
from foliot.wire.pages import Page


class WorkerQuery(msgspec.Struct, forbid_unknown_fields=True):
    state: str | None = None
    limit: Limit = 50
    cursor: str | None = None


async def list_workers(call: Call) -> Reply:
    return Reply(await call.services.fleet.workers(**msgspec.structs.asdict(call.query)))


async def drain_worker(call: Call) -> Reply:
    return Reply(await call.services.fleet.drain(worker_id(call)))


async def list_queues(call: Call) -> Reply:
    return Reply(await call.services.fleet.queues(**msgspec.structs.asdict(call.query)))


async def pause_queue(call: Call) -> Reply:
    return Reply(await call.services.fleet.pause(call.path["queue"]))


async def resume_queue(call: Call) -> Reply:
    return Reply(await call.services.fleet.resume(call.path["queue"]))


OPERATIONS = (
    Operation(
        name="listWorkers",
        method="GET",
        path="/v1/workers",
        scope="fleet:read",
        summary="List workers, newest first: what they offer and have in hand; dead ones for a day",
        handler=list_workers,
        query=WorkerQuery,
        result=Page[WorkerView],
    ),
    Operation(
        name="drainWorker",
        method="POST",
        path="/v1/workers/{worker}:drain",
        scope="fleet:write",
        summary="Have a worker claim nothing more, finish what it runs, and leave",
        handler=drain_worker,
        result=WorkerView,
    ),
    Operation(
        name="listQueues",
        method="GET",
        path="/v1/queues",
        scope="fleet:read",
        summary="List queues by name: what waits, how long, who serves it, what is paused",
        handler=list_queues,
        query=PageQuery,
        result=Page[QueueView],
    ),
    Operation(
        name="pauseQueue",
        method="POST",
        path="/v1/queues/{queue}:pause",
        scope="fleet:write",
        summary="Start nothing of a queue, for all tenants, from `holdsBy` on at the latest; what runs goes on",
        handler=pause_queue,
        result=QueueView,
    ),
    Operation(
        name="resumeQueue",
        method="POST",
        path="/v1/queues/{queue}:resume",
        scope="fleet:write",
        summary="Let workers take a paused queue again",
        handler=resume_queue,
        result=QueueView,
    ),
)
