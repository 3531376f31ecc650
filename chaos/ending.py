"""Told to end, a harness takes down first what it has put up, however often it is told."""

import asyncio
import signal


def cancel_once() -> None:
    """Let the first SIGTERM or SIGINT cancel the task that asks for this; it is on its way out then, and undisturbed.

    Whoever ends a campaign tells its rounds as well, and they are told again by who started them: a second
    cancellation would come in the middle of stopping the database, and leave it running.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def heed() -> None:
        for number in numbers:
            loop.add_signal_handler(number, lambda: None)
        if task is not None:
            task.cancel()

    for number in numbers:
        loop.add_signal_handler(number, heed)
