"""Which errors mean that the server went away, and how to wait for it to come back."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import asyncpg

from foliot.domain.retry import Backoff, delay
from foliot.kit.chance import Chance
from foliot.kit.loop import any_of

PATIENCE: Final = Backoff(initial=timedelta(milliseconds=100), factor=2.0, max=timedelta(seconds=2))
"""Between tries to reach the server again: an overdue run starts within seconds of the server accepting."""

_GONE: Final = (
    asyncpg.PostgresConnectionError,  # 08xxx
    asyncpg.OperatorInterventionError,  # 57P0x: shutdown, crash, cannot connect now; also cancelled by time-out
    asyncpg.ReadOnlySQLTransactionError,  # 25006: this server was demoted
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,  # the connection was closed under us
    asyncpg.InternalClientError,
    ConnectionError,
    TimeoutError,
    OSError,
)


def is_gone(error: BaseException) -> bool:
    """Whether `error` says that the connection, not the statement, is at fault. What was asked may have happened."""
    return isinstance(error, _GONE)


async def persist(
    step: Callable[[], Awaitable[int]],
    *,
    chance: Chance,
    stop: asyncio.Event,
    say: Callable[[BaseException, timedelta], None],
) -> int:
    """Do `step`, waiting out lost connections with bounded, jittered back-off; 0 if told to stop meanwhile."""
    failures = 0
    while not stop.is_set():
        try:
            return await step()
        except Exception as error:
            if not is_gone(error):
                raise
            failures += 1
            pause = delay(PATIENCE, failures, chance()) + timedelta(milliseconds=20)
            say(error, pause)
            await any_of(stop, within=pause)
    return 0
