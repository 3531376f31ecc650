"""PgQueuer, in its own environment: asyncpg and uvloop, batches of 500, durable tables, its advice on autovacuum."""

import asyncio
import json
import os
import sys

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from side import URL, Producer, Tally

BATCH = int(os.environ.get("PEER_BATCH", "500"))


async def main(verb: str, *numbers: str) -> None:
    connection = await asyncpg.connect(URL)
    if verb == "work":
        await work(connection)
    elif verb == "setup":
        await Queries(AsyncpgDriver(connection)).install()
        await Queries(AsyncpgDriver(connection)).optimize_autovacuum()
    else:
        await produce(Queries(AsyncpgDriver(connection)), verb, *numbers)
    await connection.close()


async def work(connection: asyncpg.Connection) -> None:
    peer, tally = PgQueuer(AsyncpgDriver(connection)), Tally()

    @peer.entrypoint("noop")
    async def noop(job: Job) -> None:
        tally.started(json.loads(job.payload)["sent"])

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(15, peer.shutdown.set)
    await peer.run(batch_size=BATCH, max_concurrent_tasks=2 * BATCH)


async def produce(queries: Queries, verb: str, *numbers: str) -> None:
    async def one(payload: dict) -> None:
        await queries.enqueue("noop", json.dumps(payload).encode())

    async def many(payloads: list[dict]) -> None:
        count = len(payloads)
        await queries.enqueue(["noop"] * count, [json.dumps(each).encode() for each in payloads], [0] * count)

    await Producer(one, many).run(verb, *numbers)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
