"""Clients of one tenant, mostly of that with a quota and a key of its payloads: what they have in common."""

import asyncio
import random
import time
from typing import Any, Final

from chaos.client import Api
from chaos.records import RATIONED, WHISPER, Operation, Outcome

AGAIN_FOR: Final = 60.0
"""Seconds during which a client asks again for what it must know."""


class Desk:
    """Where one client sits: its calls, its names for things, its payloads."""

    def __init__(self, api: Api, seed: int, client: int, tenant: str = RATIONED) -> None:
        self._api = api
        self._seed = seed
        self.client = client
        self.tenant = tenant
        self._serial = 0

    async def call(self, kind: str, **given: Any) -> Operation:
        """Ask once; the other API, if this one cannot be reached: as behind any load balancer, nothing was sent."""
        done = await self._ask(kind, **given)
        return await self._ask(kind, before=done, **given) if done.unsent else done

    async def insist(self, kind: str, **given: Any) -> Operation:
        """Ask until there is an answer; each time is an operation of its own, all under one key if there is one."""
        deadline, done = time.time() + AGAIN_FOR, None
        while True:
            done = await self._ask(kind, before=done, **given)
            refused = done.outcome is Outcome.FAIL and done.status
            if done.outcome is Outcome.OK or refused or time.time() > deadline:
                return done
            await asyncio.sleep(random.uniform(0.2, 0.8))  # noqa: S311 - spreads the load; guards nothing

    async def _ask(self, kind: str, **given: Any) -> Operation:
        return await self._api.call(kind, client=self.client, tenant=self.tenant, **given)

    async def read(self, path: str) -> Any:
        return await self._api.read(self.tenant, path)

    def key(self) -> str:
        self._serial += 1
        return f"faces{self._seed}-{self.client}-{self._serial}"

    def mortal(self) -> dict[str, Any]:
        """A run, of which every second dies at once, so that its payload stays where it is stored."""
        dies: dict[str, Any] = {"handler": "flaky", "payload": {"fail": 9}, "maxRetries": 0}
        return self.run(**(dies if self._serial % 2 else {}))

    def run(self, **more: Any) -> dict[str, Any]:
        """Something to do; what must not be read in the database stands in its payload."""
        self._serial += 1
        payload = {"tenant": self.tenant, "serial": f"{WHISPER}{self.client}.{self._serial}"}
        return {"handler": "quick", "payload": payload | more.pop("payload", {}), **more}
