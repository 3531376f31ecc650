"""Dramatiq on Redis, in its own environment: two processes of eight threads."""

import asyncio
import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from side import URL, Producer, Tally

dramatiq.set_broker(RedisBroker(url=URL))
tally = Tally()


@dramatiq.actor
def noop(sent: float, **_rest: object) -> None:
    tally.started(sent)


async def one(payload: dict) -> None:
    noop.send(**payload)


async def many(payloads: list[dict]) -> None:
    """It has no call for many: one by one."""
    for payload in payloads:
        noop.send(**payload)


if __name__ == "__main__" and sys.argv[1] != "setup":
    asyncio.run(Producer(one, many, chunk=100).run(*sys.argv[1:]))
