"""More than can be done: all who hand in much do so at once, as fast as it is taken, until a lot of it waits."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from chaos.chores import FIRST, Caller
from chaos.patience import until
from chaos.plan import CLIENTS
from chaos.records import Outcome
from chaos.watch import TROUBLE

CLIENT: Final = FIRST + 190
TENANTS: Final = tuple(tenant for tenant, role in CLIENTS if role == "bulk")
HANDS: Final = 2
"""Calls of a tenant that are under way at once."""
BATCH: Final = 1_000
LASTS: Final = 25.0
"""Seconds in which runs are handed in."""
OVER: Final = 60.0
"""Seconds after which nobody waits any more for the last of them to be taken."""
MOST: Final = 15_000
"""Runs of a tenant that wait: beyond this it waits too."""
PLENTY: Final = 5_000
"""Runs of all that must have waited, or it was not too much."""
FEW: Final = 500
"""Runs of all that wait when it is over: others hand in theirs all the time."""
LOOK: Final = 1.0
_MOMENT: Final = 0.1


class Rusher:
    def __init__(self, caller: Caller, seed: int, waiting: Callable[[], Awaitable[Mapping[str, int]]]) -> None:
        """`waiting`: how many runs of each tenant wait for a worker."""
        self._caller = caller
        self._seed = seed
        self._count = waiting
        self._serials = itertools.count(1)
        self._waiting: Counter[str] = Counter()
        """At the last look, and what was handed in since."""
        self._most = 0

    async def rush(self) -> int:
        """Hand in more than can be done, and return when it is done nearly; the most that ever waited."""
        now = asyncio.get_running_loop().time
        began, self._most = now(), 0
        await self._look()
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._keep_looking())
            hands = [group.create_task(self._hand_in(tenant, began + LASTS)) for tenant in TENANTS * HANDS]
            await asyncio.wait(hands)
            await self._look()
            await until(lambda: self._waiting.total() <= FEW, began + OVER - now(), _MOMENT)
            looking.cancel()
        return self._most

    async def _hand_in(self, tenant: str, ends: float) -> None:
        now = asyncio.get_running_loop().time
        while now() < ends:
            if self._waiting[tenant] + BATCH > MOST:
                await asyncio.sleep(_MOMENT)
                continue
            self._waiting[tenant] += BATCH
            serials = [f"{CLIENT}.{serial}" for serial in itertools.islice(self._serials, BATCH)]
            runs = [{"handler": "quick", "payload": {"tenant": tenant, "serial": serial}} for serial in serials]
            key = f"rush{self._seed}-{serials[0]}"
            done = await self._caller.insist(CLIENT, tenant, "createRuns", None, {"runs": runs}, key)
            if done.outcome is not Outcome.OK:  # somebody says that it is too much, or nobody says anything
                await asyncio.sleep(LOOK)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            await self._look()

    async def _look(self) -> None:
        with suppress(*TROUBLE):
            found = await self._count()
            self._waiting = Counter({tenant: found.get(tenant, 0) for tenant in TENANTS})
            self._most = max(self._most, self._waiting.total())
