"""A supervisor as a process of its own, to be stopped and killed: it runs `hang` and says what became of it."""

import asyncio
import sys
from datetime import timedelta

import msgspec

from foliot.kit.clock import steady
from foliot.kit.tasks import background
from foliot.worker.alone import Alone
from foliot.worker.child.nursery import Nursery, open_nursery
from worker.making import assignment, function_spec

ANSWER = "answer:"


async def renew(nursery: Nursery, lease: float) -> None:
    while True:
        nursery.hold(steady() + lease)
        await asyncio.sleep(lease / 10)


async def main(place: str, lease: float) -> None:
    async with open_nursery(silence=timedelta(seconds=lease / 2)) as nursery, background(renew(nursery, lease)):
        alone = Alone(nursery, "worker.captive:worker", spare=False)
        payload = msgspec.json.encode({"place": place, "mood": "deaf"})
        answer = await alone.isolated(assignment(function_spec("hang"), payload=payload))
        print(ANSWER, answer, flush=True)  # noqa: T201
        answer = await alone.isolated(assignment(function_spec("plain"), payload=b"null"))
        print(ANSWER, answer, flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
