"""awa-pg, in its own environment: queue storage, COPY in thousands, four enqueue shards."""

import asyncio
import sys
from dataclasses import dataclass

from awa import AsyncClient
from side import URL, Producer, Tally

WORKERS = 256
QUEUE = "bench"


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
    await transaction.execute(insert + " ON CONFLICT (queue) DO UPDATE SET enqueue_shards = 4", QUEUE)
    await transaction.commit()


async def work(client: AsyncClient) -> None:
    tally, asked = Tally(), asyncio.Event()

    @client.task(Noop, queue=QUEUE)
    async def noop(job: object) -> None:
        tally.started(job.args.sent)

    asyncio.get_running_loop().add_signal_handler(15, asked.set)
    await client.start([(QUEUE, WORKERS)], poll_interval_ms=50)
    await asked.wait()
    await client.shutdown()


async def produce(client: AsyncClient, verb: str, *numbers: str) -> None:
    async def one(payload: dict) -> None:
        await client.insert(Noop(**payload), queue=QUEUE)

    async def many(payloads: list[dict]) -> None:
        await client.enqueue_many_copy([Noop(**each) for each in payloads], queue=QUEUE)

    await Producer(one, many).run(verb, *numbers)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
