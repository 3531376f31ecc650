"""Whether an event loop runs here, and how to wait on it for whichever comes first."""

import asyncio
from datetime import timedelta


def is_on_a_loop() -> bool:
    """Whether who asks is called by an event loop: then it must not wait without `await`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def any_of(*events: asyncio.Event, within: timedelta | None = None) -> None:
    """Return when one of the events is set, or after `within`."""
    if any(event.is_set() for event in events):
        return
    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake(_: object = None) -> None:
        if not woken.done():
            woken.set_result(None)

    # Each wait is driven by hand to the future on which it stands: a task for each would cost ten times as much, and
    # a process of five hundred workers does little else.
    waits = [event.wait() for event in events]
    timer = None if within is None else loop.call_later(within.total_seconds(), wake)
    try:
        for wait in waits:
            wait.send(None).add_done_callback(wake)
        await woken
    finally:
        if timer is not None:
            timer.cancel()
        for wait in waits:
            wait.close()
