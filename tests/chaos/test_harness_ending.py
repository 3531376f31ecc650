"""Whoever is told to end takes down first what was put up."""

import asyncio
import os
import signal

import pytest

from chaos.ending import cancel_once


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_told_again_while_it_takes_everything_down_it_goes_on_with_that(first: signal.Signals, second: signal.Signals):
    done = []

    async def campaign() -> None:
        cancel_once()
        heard = asyncio.Event()
        loop = asyncio.get_running_loop()
        try:
            os.kill(os.getpid(), first)
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), second)
            # Signals are heard in the loop's own turn: one that could cancel us would have done so before this.
            loop.call_soon(loop.call_soon, heard.set)
            await heard.wait()
            await asyncio.to_thread(done.append, "stopped")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(campaign())
    assert done == ["stopped"]
