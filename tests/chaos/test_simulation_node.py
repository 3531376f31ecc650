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


class Falling(Node):
    """It meets something that nobody has thought of."""

    async def serve(self) -> None:
        raise ExceptionGroup("in a task", [KeyError("nobody thought of it")])


async def test_what_falls_over_is_told_and_started_again():
    crashes: list[str] = []
    loop = asyncio.get_running_loop()
    again = asyncio.Event()

    def call_later(*_: Any) -> asyncio.TimerHandle:
        again.set()
        return loop.call_later(RESTART[1], lambda: None)

    world = SimpleNamespace(
        seed=1,
        note=lambda _: None,
        crash=lambda boot, error: crashes.append(f"{boot}: {error!r}"),
        loop=SimpleNamespace(create_task=loop.create_task, call_later=call_later),
    )
    node = Falling(cast("World", world), "scheduler-0")
    node.start()
    await asyncio.wait_for(again.wait(), 10)
    await node.kill()
    assert crashes == ["scheduler-0/1: ExceptionGroup('in a task', [KeyError('nobody thought of it')])"]
