"""The producer's process: hands runs in through `Submitter`, the service behind the API, not through HTTP."""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import cycle
from typing import Any, Final

import msgspec
import uvloop

from foliot.domain.limits import Concurrency
from foliot.domain.spec import FunctionHandler, Handler, HttpHandler, Spec
from foliot.kit.signals import Hints
from foliot.kit.tasks import background
from foliot.services.submit import Submitter
from foliot.store.database import Database
from foliot.store.hints import notify
from foliot.store.specs import SpecBook, SpecRef
from foliot.store.submission import NewRun
from foliot.store.tenants import find_tenant

TENANTS: Final = 20
BATCH: Final = 1_000
MOST_WAITING: Final = 30_000
SELDOM: Final = 0.1
"""Seconds between looks that walk over what has just been deleted."""
CALLS: Final = 100
"""A second, of a producer that keeps a pace."""
WARM_UP: Final = 2.0
"""Seconds in which a trickle opens its connections, and the worker meets cold caches."""
PAYLOAD: Final = msgspec.json.encode({"user": 123, "template": "welcome", "note": "y" * 58})


def tenant_name(number: int) -> str:
    return f"bench-{number}"


def handler_of(name: str) -> Handler:
    """An address to call, or the name of a function."""
    return HttpHandler(url=name) if name.startswith("http:") else FunctionHandler(name)


async def specs_of(database: Database, handler: str) -> list[SpecRef]:
    """The spec of this handler for each of the bench's tenants."""
    book, spec = SpecBook(database), Spec(handler=handler_of(handler))
    tenants = [await find_tenant(database, tenant_name(number)) for number in range(TENANTS)]
    return [await book.intern(tenant, spec) for tenant in tenants if tenant is not None]


@asynccontextmanager
async def submitter(database: Database) -> AsyncIterator[Submitter]:
    line = database.line(hot=False)
    hints = Hints(partial(notify, line))
    accepting = Submitter(database, hints.give)
    try:
        async with background(accepting.run(), hints.run()):
            yield accepting
    finally:
        await line.close()


async def fill(database: Database, count: int, handler: str = "noop") -> dict[str, Any]:
    """Hand in `count` runs, rounded up to whole batches, as fast as they are taken."""
    refs, count = cycle(await specs_of(database, handler)), -(-count // BATCH) * BATCH
    async with submitter(database) as accepting:
        began = time.monotonic()
        for _ in range(0, count, BATCH):
            await accepting.submit([NewRun(next(refs), PAYLOAD) for _ in range(BATCH)])
        return {"made": count, "seconds": time.monotonic() - began}


async def sustain(database: Database, seconds: float) -> dict[str, Any]:
    """Hand in runs for a while, holding back when too many wait."""
    refs, made = cycle(await specs_of(database, "noop")), 0
    async with submitter(database) as accepting:
        end, looked = time.monotonic() + seconds, 0.0
        while (now := time.monotonic()) < end:
            if now - looked > 0.1:
                looked = now
                if await _waiting(database) >= MOST_WAITING:
                    await asyncio.sleep(0.01)
                    looked = 0.0
                    continue
            await accepting.submit([NewRun(next(refs), PAYLOAD) for _ in range(BATCH)])
            made += BATCH
    return {"made": made}


def limited_spec(limit: int, keys: int) -> Spec:
    """With a limit, unless that is 0: of the job, or of each key."""
    if not limit:
        return Spec(handler=FunctionHandler("noop"))
    return Spec(handler=FunctionHandler("noop"), concurrency=Concurrency(limit, "payload.user" if keys else None))


async def limited(database: Database, seconds: float, job: int, limit: int, keys: int) -> dict[str, Any]:
    """Hand in runs of a job of the first tenant for a while, their keys drawn at random, not too many at once.

    Answers with the runs that have keys, in the order in which they were handed in, and with their keys.
    """
    tenant = await find_tenant(database, tenant_name(0))
    ref, made = await SpecBook(database).intern(tenant or 0, limited_spec(limit, keys)), 0
    runs: list[int] = []
    keys_of: list[int] = []
    async with submitter(database) as accepting:
        end, looked, is_full = time.monotonic() + seconds, 0.0, False
        while (now := time.monotonic()) < end:
            if now - looked > SELDOM:
                looked, is_full = now, await _unfinished(database) >= MOST_WAITING
            if is_full:
                await asyncio.sleep(SELDOM / 2)
                continue
            drawn = [random.randrange(keys) if keys else None for _ in range(BATCH)]  # noqa: S311 - no secret
            accepted = await accepting.submit([NewRun(ref, PAYLOAD, job=job, limit_key=key) for key in drawn])
            made += BATCH
            if keys:
                runs += accepted.ids
                keys_of += [key for key in drawn if key is not None]
    return {"made": made, "runs": runs, "keys": keys_of}


async def pace(database: Database, seconds: float, rate: float) -> dict[str, Any]:
    """Hand in `rate` runs a second, in a hundred calls a second, whether or not earlier ones have been answered."""
    refs, made = cycle(await specs_of(database, "noop")), 0
    async with submitter(database) as accepting, asyncio.TaskGroup() as group:
        began = time.monotonic()
        while (late := time.monotonic() - began) < seconds:
            await asyncio.sleep(max(0.0, made / rate - late))
            count = max(1, round(rate / CALLS))
            group.create_task(accepting.submit([NewRun(next(refs), PAYLOAD) for _ in range(count)]))
            made += count
    return {"made": made, "seconds": time.monotonic() - began}


async def trickle(database: Database, seconds: float, rate: float) -> dict[str, Any]:
    """Hand in single runs at an even pace, each with the instant of its call; tells when it had warmed up."""
    refs, made = cycle(await specs_of(database, "note")), 0
    async with submitter(database) as accepting, asyncio.TaskGroup() as group:
        began, warm = time.monotonic(), time.time() + WARM_UP
        while (late := time.monotonic() - began) < WARM_UP + seconds:
            await asyncio.sleep(max(0.0, made / rate - late))
            payload = msgspec.json.encode({"sent": time.time(), "note": "y" * 70})
            group.create_task(accepting.submit([NewRun(next(refs), payload)]))
            made += 1
    return {"made": made, "warm": warm}


async def _waiting(database: Database) -> int:
    async with database.connection() as connection:
        count = "SELECT count(*) FROM (SELECT FROM ready LIMIT $1) AS head"
        return await connection.fetchval(count, MOST_WAITING)  # type: ignore[no-any-return]


async def _unfinished(database: Database) -> int:
    """Those that wait for their turn are not in `ready`."""
    async with database.connection() as connection:
        count = "SELECT count(*) FROM (SELECT FROM run WHERE id > 0 LIMIT $1) AS head"
        return await connection.fetchval(count, MOST_WAITING)  # type: ignore[no-any-return]


async def main(dsn: str, what: str, *numbers: str) -> None:
    database = await Database.open(dsn, size=2)
    match what:
        case "fill":
            answer = await fill(database, int(numbers[0]), *numbers[1:])
        case "sustain":
            answer = await sustain(database, float(numbers[0]))
        case "limited":
            answer = await limited(database, float(numbers[0]), *map(int, numbers[1:]))
        case "pace":
            answer = await pace(database, float(numbers[0]), float(numbers[1]))
        case "trickle":
            answer = await trickle(database, float(numbers[0]), float(numbers[1]))
        case _:
            raise ValueError(what)
    await database.close()
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
