"""The loop around the scheduler's duties."""

import asyncio

from foliot.cli.serve_scheduler import repeat


class _Busy:
    """Finds something every time; ends the test the second time."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self.rounds = 0
        self.closed = False

    async def run_once(self) -> int:
        self.rounds += 1
        if self.rounds == 2:
            self._stop.set()
        return 1

    async def pause(self) -> float:
        raise AssertionError("there is always something to do")

    async def close(self) -> None:
        self.closed = True


async def test_a_duty_that_finds_work_goes_on_at_once():
    stop = asyncio.Event()
    duty = _Busy(stop)
    await repeat(duty, stop, asyncio.Event(), lambda: None)
    assert (duty.rounds, duty.closed) == (2, True)


async def test_rounds_that_find_work_begin_apart():
    stop, found = asyncio.Event(), asyncio.Event()
    duty = _Busy(stop)
    async with asyncio.TaskGroup() as group:
        group.create_task(repeat(duty, stop, asyncio.Event(), found.set, apart=lambda: 3_600.0))
        await found.wait()
        stop.set()
    assert (duty.rounds, duty.closed) == (1, True)
