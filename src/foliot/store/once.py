"""Doing something once per idempotency key, in the transaction that does it."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from foliot.domain.errors import Conflict
from foliot.store.database import Connection, Database
from foliot.store.submission import Answer, Once, first_answer, recall, remember


class AskedWith(NamedTuple):
    """The key that came with a call, if any, and what was asked."""

    tenant: int
    key: str | None = None
    fingerprint: bytes = b""


class _RepeatedError(Exception):
    """Leaves the transaction: this key has had its answer."""

    def __init__(self, first: Answer) -> None:
        super().__init__()
        self.first = first


async def keep_answer(connection: Connection, asked: AskedWith, body: bytes) -> None:
    """Keep the answer with the deed, or leave the transaction with the one that was given before."""
    if asked.key is None:
        return
    once = Once(asked.tenant, asked.key, Answer(asked.fingerprint, body))
    if first := (await remember(connection, [once])).get((asked.tenant, asked.key)):
        raise _RepeatedError(first)


async def answered_once(database: Database, asked: AskedWith, deed: Callable[[], Awaitable[bytes]]) -> bytes:
    """Do `deed`, which keeps its answer; a call with the same key gets the first answer instead."""
    if asked.key is None:
        return await deed()
    if (first := await _first(database, asked.tenant, asked.key)) is not None:
        return first_answer(first, asked.fingerprint)
    try:
        return await deed()
    except _RepeatedError as repeated:
        return first_answer(repeated.first, asked.fingerprint)
    except Conflict:
        # What is in the way may be what this very call made, the first time.
        if (first := await _first(database, asked.tenant, asked.key)) is None:
            raise
        return first_answer(first, asked.fingerprint)


async def _first(database: Database, tenant: int, key: str) -> Answer | None:
    async with database.connection() as connection:
        return (await recall(connection, [(tenant, key)])).get((tenant, key))
