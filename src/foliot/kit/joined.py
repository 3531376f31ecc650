"""Calls that share one deed: everything that arrives while one is under way goes into the next."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


class Joined(Generic[Ask, Answer]):
    """Gathers without a timer. One task of `run` must be going for calls to return."""

    def __init__(
        self,
        act: Callable[[Sequence[Ask]], Awaitable[Sequence[Answer | Exception]]],
        *,
        size: Callable[[Ask], int] = lambda _: 1,
        most: int,
    ) -> None:
        """`act` answers every ask in its place, with an exception if that one alone failed; `most` by `size`."""
        self._act = act
        self._size = size
        self._most = most
        self._waiting: list[tuple[Ask, asyncio.Future[Answer]]] = []
        self._arrived = asyncio.Event()

    async def __call__(self, ask: Ask) -> Answer:
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, done))
        self._arrived.set()
        return await done

    async def run(self) -> None:
        """Act on what arrives, until cancelled."""
        try:
            while True:
                await self._arrived.wait()
                if calls := self._gather():
                    await self._answer(calls)
                else:
                    self._arrived.clear()
        finally:
            for _, done in self._waiting:
                done.cancel()

    def _gather(self) -> list[tuple[Ask, "asyncio.Future[Answer]"]]:
        taken, size = 0, 0
        for ask, _ in self._waiting:
            if taken and size + self._size(ask) > self._most:
                break
            taken, size = taken + 1, size + self._size(ask)
        calls, self._waiting = self._waiting[:taken], self._waiting[taken:]
        return calls

    async def _answer(self, calls: list[tuple[Ask, "asyncio.Future[Answer]"]]) -> None:
        # Also for those who have hung up: what a worker sent is to happen, whether or not it waits for the answer.
        answers: Sequence[Answer | Exception]
        try:
            answers = await self._act([ask for ask, _ in calls])
        except asyncio.CancelledError:
            for _, done in calls:
                done.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - every caller gets it as the answer to its own call
            answers = [error] * len(calls)
        for (_, done), answer in zip(calls, answers, strict=True):
            if done.done():
                continue
            if isinstance(answer, Exception):
                done.set_exception(answer)
            else:
                done.set_result(answer)
