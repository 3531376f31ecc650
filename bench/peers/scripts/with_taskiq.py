"""taskiq on Redis streams, in its own environment: no result backend, fifty calls in flight where many are made."""

import asyncio
import sys

import uvloop
from side import URL, Producer, Tally
from taskiq_redis import RedisStreamBroker

# Its default, "$", would skip what was added before the first worker came.
broker = RedisStreamBroker(url=URL, consumer_id="0", xread_count=100)
tally = Tally()


@broker.task(task_name="noop")
async def noop(sent: float, **_rest: object) -> None:
    tally.started(sent)


async def one(payload: dict) -> None:
    await noop.kiq(**payload)


async def many(payloads: list[dict]) -> None:
    """It has no call for many: this many at once."""
    await asyncio.gather(*(noop.kiq(**payload) for payload in payloads))


async def main(*arguments: str) -> None:
    await broker.startup()
    if arguments[0] != "setup":
        await Producer(one, many, chunk=50).run(*arguments)
    await broker.shutdown()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
