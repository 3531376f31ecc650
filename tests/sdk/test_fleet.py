"""Workers and queues by both clients."""

from foliot.domain.ids import encode
from sdk.serving import Served
from sdk.test_clients import away
from world import World


async def test_workers_and_queues_are_looked_after_by_both_clients(foliot: Served, world: World):
    await world.submit(2)
    first, second = [await world.worker() for _ in range(2)]
    client = foliot.client()
    listed = await away(client.workers, state="live", limit=1)
    assert [each.worker_id for each in listed] == [encode("wrk", second.id)]
    assert listed.next_cursor
    assert (await away(client.drain_worker, encode("wrk", first.id))).state == "draining"
    (queue,) = await away(client.queues)
    assert (queue.name, queue.ready) == ("default", 2)
    assert (await away(client.pause_queue, "default")).holds_by
    async with foliot.aio() as aio:
        assert (await aio.resume_queue("default")).paused_at is None
        assert (await aio.pause_queue("default")).paused_at
        assert [each.state for each in await aio.workers()] == ["live", "draining"]
        assert (await aio.drain_worker(encode("wrk", second.id))).state == "draining"
        assert [each.name for each in await aio.queues(limit=5)] == ["default"]
