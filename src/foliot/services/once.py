"""What is asked twice under one idempotency key is done once, and answered as at first.

For changes that may be made again without harm. What creates something keeps its answer itself, with what it creates.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from foliot.store import submission
from foliot.store.database import Database
from foliot.store.submission import Asked, first_answer
from foliot.store.vault import NO_VAULT, Vault, open_answer, sealed_answer

PATIENCE: Final = 5.0
"""Seconds that who comes second waits for the answer of who came first."""
LOOKS_EVERY: Final = 0.05


class Once:
    def __init__(self, database: Database, vault: Vault = NO_VAULT, patience: float = PATIENCE) -> None:
        self._database = database
        self._vault = vault
        self._patience = patience

    async def do(self, asked: Asked, deed: Callable[[], Awaitable[bytes]]) -> bytes:
        """What the deed answers, or has answered before. A refusal is not kept: who is refused may mend the request.

        The key is written down before the deed, and the answer after it. If there is still none when patience has come
        to its end, the process that began was killed, or is slow: then it is done again.
        """
        if (first := await self._first(asked)) is not None:
            return first
        try:
            body = await deed()
        except Exception:
            with suppress(Exception):  # without the database, the next one finds a key without an answer
                await submission.forget_begun(self._database, asked)
            raise
        kept = await sealed_answer(self._vault, asked.tenant, asked.key, body)
        if (faster := await submission.answer_begun(self._database, asked, kept)) is not None:
            return await open_answer(self._vault, asked.tenant, asked.key, faster)
        return body

    async def _first(self, asked: Asked) -> bytes | None:
        """What was answered to this key before; none if it is ours to do."""
        now = asyncio.get_running_loop().time
        end = now() + self._patience
        while (found := await submission.begin(self._database, asked)) is not None:
            if body := first_answer(found, asked.fingerprint):
                return await open_answer(self._vault, asked.tenant, asked.key, body)
            if now() >= end:
                return None
            await asyncio.sleep(LOOKS_EVERY)
        return None
