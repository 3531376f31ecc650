"""Workers at the gateway, by hand."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from foliot.domain.ids import encode
from foliot.services.gateway import Bearer
from foliot.wire.work import ClaimAnswer, ClaimBody, Heartbeat, Registration, SettleBody, Succeeded
from world import PATIENCE, World

MINE = Bearer("mine", ["*"])


async def stays() -> None:
    """A worker that does not hang up."""
    await asyncio.Event().wait()


class Remote:
    """A worker at the gateway, by hand."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.id = encode("wrk", number)
        self.lanes: list[int] = []
        self._claims = 0

    async def register(self, *queues: str, bearer: Bearer = MINE) -> "Remote":
        told = Registration("remote", list(queues or ["default"]), ["fn:noop"])
        answer = await self.world.gateway.heartbeat(bearer, Heartbeat(self.id, told))
        self.lanes = [told.lane for told in answer.lanes]
        return self

    async def claim(
        self,
        most: int = 10,
        wait: float = 0.0,
        gone: Callable[[], Awaitable[None]] = stays,
        number: int | None = None,
        ended: SettleBody | None = None,
    ) -> ClaimAnswer:
        self._claims += 1
        body = ClaimBody(self.id, number or self._claims, self.lanes, most=most, wait=wait, settle=ended)
        return await asyncio.wait_for(self.world.gateway.claim(MINE, body, gone), PATIENCE)


Hire = Callable[..., Awaitable[Remote]]


async def waiting(world: World, count: int) -> None:
    """Return when so many polls wait, and a claim has found nothing for them."""
    desks = world.gateway._claims._desks
    async with asyncio.timeout(PATIENCE):
        while True:
            polls = [poll for desk in desks.values() for poll in desk.waiting]
            if len(polls) == count and any(poll.was_tried for poll in polls):
                return
            await asyncio.sleep(0.001)


def succeeded(runs: Any) -> list[Succeeded]:
    return [Succeeded(runs.fence[0], runs.run_id, runs.position, runs.scheduled_at)]
