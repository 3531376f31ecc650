"""Celery on Redis, in its own environment: a large prefetch, results ignored; its pool is on the command line."""

import asyncio
import sys

from celery import Celery
from side import URL, Producer, Tally

app = Celery("bench", broker=URL)
app.conf.update(
    task_ignore_result=True,
    task_store_errors_even_if_ignored=False,
    task_acks_late=False,
    worker_prefetch_multiplier=100,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)
tally = Tally()


@app.task(name="noop")
def noop(sent: float, **_rest: object) -> None:
    tally.started(sent)


async def main(verb: str, *numbers: str) -> None:
    with app.connection_for_write() as connection, app.amqp.Producer(connection) as channel:

        async def one(payload: dict) -> None:
            noop.apply_async(kwargs=payload, producer=channel)

        async def many(payloads: list[dict]) -> None:
            """It has no call for many: one by one."""
            for payload in payloads:
                noop.apply_async(kwargs=payload, producer=channel)

        await Producer(one, many, chunk=100).run(verb, *numbers)


if __name__ == "__main__" and sys.argv[1] != "setup":
    asyncio.run(main(*sys.argv[1:]))
