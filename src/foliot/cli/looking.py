"""How the worker processes of this machine are doing, as the database tells it, or a gateway before it."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from foliot.cli.compose import dsn_of
from foliot.domain.scaling import DEEP
from foliot.kit.settings import Access, Settings
from foliot.store.database import Line
from foliot.store.roster import Look, look_at_processes
from foliot.wire.work import LookAnswer, LookBody
from foliot.worker.gateway.calls import Calls, open_gateway_session

Looking = Callable[[Sequence[int]], Awaitable[Look]]
"""Tells how the processes of these pids are doing."""


@asynccontextmanager
async def open_looking(settings: Settings, gateway: Access | None) -> AsyncIterator[Looking]:
    """The same answer either way: what a machine's processes have in hand, and what waits for them."""
    host = socket.gethostname()
    if gateway is not None:
        async with open_gateway_session() as session:
            calls = Calls(session, gateway)

            async def ask(pids: Sequence[int]) -> Look:
                answer = await calls.post("look", LookBody(host, list(pids)), LookAnswer)
                return Look(answer.busy, answer.backlog)

            yield ask
        return
    line = Line(dsn_of(settings), statement_timeout="3s")

    async def look(pids: Sequence[int]) -> Look:
        return await look_at_processes(line, host, pids, DEEP + 1)

    try:
        yield look
    finally:
        await line.close()
