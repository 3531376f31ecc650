"""awa-pg, in its own environment: queue storage, COPY in thousands, four enqueue shards."""

import asyncio
import os
import sys
from dataclasses import dataclass
from itertools import count

from awa import AsyncClient, PartitionedQueue
from side import URL, Producer, Tally

WORKERS = 256
"""In each process, for each partition."""
QUEUE = PartitionedQueue("bench", int(os.environ.get("PEER_PARTITIONS", "1")))
"""Of one partition it is a plain queue of this name."""


@dataclass
class Noop:
    user: int
    template: str
    note: str
    sent: float


async def main(verb: str, *numbers: str) -> None:
    # Its driver wants a host before the slash, and then takes the socket's folder from the query.
    client = AsyncClient(URL.replace("@/", "@localhost/", 1), max_connections=10 if verb == "work" else 1)
    if verb == "setup":
        await setup(client)
    elif verb == "work":
        await work(client)
    else:
        await produce(client, verb, *numbers)
    await client.close()


async def setup(client: AsyncClient) -> None:
    await client.migrate()
    await client.install_queue_storage()  # what its migration alone leaves for the first worker to do
    transaction = await client.transaction()
    insert = "INSERT INTO awa.queue_meta (queue, enqueue_shards) VALUES ($1, 4)"
    for name in QUEUE.physical_queues:
        await transaction.execute(insert + " ON CONFLICT (queue) DO UPDATE SET enqueue_shards = 4", name)
    await transaction.commit()


async def work(client: AsyncClient) -> None:
    tally, asked = Tally(), asyncio.Event()

    @client.task(Noop, queue=QUEUE.logical_queue)
    async def noop(job: object) -> None:
        tally.started(job.args.sent)

    asyncio.get_running_loop().add_signal_handler(15, asked.set)
    await client.start([(name, WORKERS) for name in QUEUE.physical_queues], poll_interval_ms=50)
    await asked.wait()
    await client.shutdown()


async def produce(client: AsyncClient, verb: str, *numbers: str) -> None:
    turns = count()  # call by call to the next partition, as it advises where no order is wanted

    async def one(payload: dict) -> None:
        await client.insert(Noop(**payload), **QUEUE.route_by_index(next(turns)))

    async def many(payloads: list[dict]) -> None:
        await client.enqueue_many_copy([Noop(**each) for each in payloads], **QUEUE.route_by_index(next(turns)))

    await Producer(one, many).run(verb, *numbers)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
