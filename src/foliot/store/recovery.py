"""Which errors mean that the server went away, and how to wait for it to come back."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import asyncpg

from foliot.domain.errors import FoliotError, Unavailable
from foliot.domain.retry import Backoff, delay
from foliot.kit.chance import Chance
from foliot.kit.loop import any_of

PATIENCE: Final = Backoff(initial=timedelta(milliseconds=100), factor=2.0, max=timedelta(seconds=2))
"""Between tries to reach the server again: an overdue run starts within seconds of the server accepting."""

_GONE: Final = (
    asyncpg.PostgresConnectionError,  # 08xxx
    asyncpg.OperatorInterventionError,  # 57P0x: shutdown, crash, cannot connect now; also cancelled by time-out
    asyncpg.IdleInTransactionSessionTimeoutError,  # 25P03: we were stopped in mid-transaction, and hung up on
    asyncpg.ReadOnlySQLTransactionError,  # 25006: this server was demoted
    asyncpg.InsufficientResourcesError,  # 53xxx: too many connections, disk full, out of memory
    asyncpg.InterfaceError,  # the connection was closed under us
    asyncpg.InternalClientError,
    OSError,  # refused, reset, timed out, no such socket
)


class Contended(FoliotError):  # noqa: N818 - as Refused
    """Somebody between us and the database says that others stand in the way."""


_CONTENDED: Final = (
    Contended,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)
_SAID_AGAIN: Final = 10
"""Of the failures that follow each other, the first is told and every tenth."""


class Refused(FoliotError):  # noqa: N818 - reads aloud
    """The server does not take us, and waiting will not mend it: wrong address, name or password."""


class OutOfReach(ConnectionError):  # noqa: N818 - as Refused
    """What stands between us and the database is away or overwhelmed; the message says where and why."""


def is_gone(error: BaseException) -> bool:
    """Whether `error` says that the connection, not the statement, is at fault. What was asked may have happened."""
    if isinstance(error, Unavailable):
        return error.__cause__ is not None and is_gone(error.__cause__)
    # The driver calls it an InterfaceError too when an argument cannot be encoded; that is a ValueError besides.
    return isinstance(error, _GONE) and not isinstance(error, ValueError)


def is_contended(error: BaseException) -> bool:
    """Whether others stood in the way: a lock held for longer than we wait, a deadlock. Nothing happened."""
    return isinstance(error, _CONTENDED)


def is_unfit(error: BaseException) -> bool:
    """Whether it is the values that the database cannot keep."""
    return isinstance(error, (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError))


def trouble(error: BaseException) -> str:
    """What `persist` waits out, in words."""
    if isinstance(error, OutOfReach):
        return str(error)
    cause = error.__cause__ if isinstance(error, Unavailable) and error.__cause__ else error
    what = str(cause).partition("\n")[0] or type(cause).__name__
    return f"the database is {'busy' if is_contended(error) else 'out of reach'}: {what}"


async def persist(
    step: Callable[[], Awaitable[int]],
    *,
    chance: Chance,
    stop: asyncio.Event,
    say: Callable[[BaseException, timedelta], None],
) -> int:
    """Do `step`, waiting out lost connections and rivals with bounded, jittered back-off; 0 if told to stop meanwhile.

    A step that failed may have happened: it must bear being repeated.
    """
    failures = 0
    while not stop.is_set():
        try:
            return await step()
        except Exception as error:
            if not (is_gone(error) or is_contended(error)):
                raise
            failures += 1
            pause = delay(PATIENCE, failures, chance()) + timedelta(milliseconds=20)
            if failures == 1 or failures % _SAID_AGAIN == 0:
                say(error, pause)
            await any_of(stop, within=pause)
    return 0
