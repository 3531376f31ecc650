"""Procrastinate, in its own environment: 50 at a time, LISTEN on, finished jobs deleted."""

import asyncio
import sys

from procrastinate import App, PsycopgConnector
from side import URL, Producer, Tally

app = App(connector=PsycopgConnector(conninfo=URL, min_size=1, max_size=20))
tally = Tally()


@app.task(name="noop")
async def noop(sent: float, **_rest: object) -> None:
    tally.started(sent)


async def one(payload: dict) -> None:
    await noop.defer_async(**payload)


async def many(payloads: list[dict]) -> None:
    await noop.batch_defer_async(*payloads)


async def main(verb: str, *numbers: str) -> None:
    async with app.open_async():
        if verb == "setup":
            await app.schema_manager.apply_schema_async()
        elif verb == "work":
            await app.run_worker_async(
                concurrency=50, listen_notify=True, fetch_job_polling_interval=0.5, delete_jobs="always"
            )
        else:
            await Producer(one, many, chunk=500).run(verb, *numbers)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
