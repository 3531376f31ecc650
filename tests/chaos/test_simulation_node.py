"""The life of a simulated process: one at a time, whatever happens to it while it leaves."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from chaos.simulation.node import RESTART, Node
from chaos.simulation.world import World
from foliot.worker.process import LeaseLost


class Leaving(Node):
    """Told to end, it finds that its lease was lost."""

    async def serve(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise LeaseLost("it was away for too long") from None


async def test_who_is_killed_while_it_leaves_is_started_by_nobody_but_its_killer():
    told: list[str] = []
    loop = asyncio.get_running_loop()
    restarts: list[float] = []

    def call_later(seconds: float, *_: Any) -> asyncio.TimerHandle:
        restarts.append(seconds)
        return loop.call_later(RESTART[1], lambda: None)

    world = SimpleNamespace(
        seed=1, note=told.append, loop=SimpleNamespace(create_task=loop.create_task, call_later=call_later)
    )
    node = Leaving(cast("World", world), "worker-0")
    node.start()
    await asyncio.sleep(0)
    await node.kill()
    assert told == ["worker-0/1 starts", "worker-0/1 is killed", "worker-0/1 lost its lease"]
    assert restarts == []
