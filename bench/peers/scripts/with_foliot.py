"""Foliot, in the repository's environment: through the service that its API calls, and its own worker process."""

import asyncio
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any

import msgspec
import uvloop
from side import URL, Payload, Producer, Tally, say

from foliot.bench.produce import TENANTS, specs_of, submitter, tenant_name
from foliot.domain.job import Draft
from foliot.domain.schedule import Cron
from foliot.domain.spec import FunctionHandler, Spec
from foliot.sdk.context import Context
from foliot.sdk.worker import Worker
from foliot.services.control import Control
from foliot.services.tenants import Tenants
from foliot.store.database import Database
from foliot.store.migrate import migrate
from foliot.store.specs import SpecBook
from foliot.store.submission import NewRun
from foliot.store.tenants import find_tenant

BATCH = 1_000
"""Jobs that one call creates."""

worker = Worker()
tally = Tally()


@worker.task
async def noop(_ctx: Context, payload: Any) -> None:
    tally.started(payload["sent"])


@worker.task
async def due(ctx: Context, _payload: Any) -> None:
    tally.started(ctx.scheduled_at.timestamp())


async def main(verb: str, *numbers: str) -> None:
    if verb == "setup":
        await migrate(URL)
    database = await Database.open(URL, size=4)
    if verb == "setup":
        for number in range(TENANTS):
            await Tenants(database).create(tenant_name(number))
    elif verb == "schedule":
        await schedule(database, int(numbers[0]), float(numbers[1]))
    else:
        await produce(database, verb, *numbers)
    await database.close()


async def produce(database: Database, verb: str, *numbers: str) -> None:
    refs = cycle(await specs_of(database, "noop"))
    encode = msgspec.json.Encoder().encode
    async with submitter(database) as accepting:

        async def one(payload: Payload) -> None:
            await accepting.submit([NewRun(next(refs), encode(payload))])

        async def many(payloads: list[Payload]) -> None:
            await accepting.submit([NewRun(next(refs), encode(payload)) for payload in payloads])

        await Producer(one, many).run(verb, *numbers)


async def schedule(database: Database, count: int, ahead: float) -> None:
    """Create `count` cron jobs that are all due at one instant, `ahead` seconds from now."""
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=ahead)
    expression = f"{at.second} {at.minute} {at.hour} {at.day} {at.month} *"
    draft = Draft(
        name="due",
        key=None,
        spec=Spec(handler=FunctionHandler("due")),
        payload=b"{}",
        labels={},
        timing={"cronExpression": expression, "timezone": "UTC"},
        recurrence=Cron(expression, "UTC"),
    )
    control = Control(database, SpecBook(database), lambda _: None)
    began = time.monotonic()

    async def create(number: int) -> None:
        tenant = await find_tenant(database, tenant_name(number)) or 0
        mine = [draft] * len(range(number, count, TENANTS))
        for first in range(0, len(mine), BATCH):
            await control.create_batch(tenant, mine[first : first + BATCH], render=lambda _: b"")

    await asyncio.gather(*(create(number) for number in range(TENANTS)))
    say({"due": at.timestamp(), "made": count, "seconds": time.monotonic() - began})


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
