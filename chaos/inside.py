"""Clients past the API: one hands in runs inside transactions of its own, one changes what tenants weigh."""

import itertools
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import asyncpg

from chaos.client import Api
from chaos.places import CLIENT
from chaos.proxy import Mode, Proxies
from chaos.records import Operation, Outcome
from chaos.topology import TENANTS
from chaos.watch import TROUBLE
from foliot import AsyncFoliot

NUMBER: Final = 130
FATES: Final = ("commit", "rollback", "commit", Mode.CUT_BEFORE, "commit", "rollback", "commit", Mode.CUT_AFTER)
"""What becomes of one transaction after the other: no dice."""


class Insider:
    def __init__(self, api: Api, proxies: Proxies, dsn: str, urls: list[str], keys: Mapping[str, str]) -> None:
        self._api = api
        self._proxies = proxies
        self._dsn = dsn
        self._clients = {tenant: AsyncFoliot(urls[0], key) for tenant, key in keys.items()}
        self._turns = zip(itertools.count(1), itertools.cycle(FATES), itertools.cycle(keys), strict=False)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    async def step(self) -> None:
        """One transaction, written down as what its owner may conclude."""
        serial, fate, tenant = next(self._turns)
        body = {"handler": "quick", "payload": {"tenant": tenant, "serial": f"{NUMBER}.{serial}"}}
        operation = Operation(
            number=self._api.number(),
            client=NUMBER,
            tenant=tenant,
            kind="submitInside",
            invoked=time.time(),
            completed=0.0,
            outcome=Outcome.FAIL,  # whoever has not asked for a commit knows that there is none
            body=body,
        )
        try:
            await self._carry_out(operation, fate)
        except TROUBLE:
            pass
        finally:
            operation.completed = time.time()
            self._api.write(operation)

    async def _carry_out(self, operation: Operation, fate: str) -> None:
        connection = await asyncpg.connect(self._dsn, timeout=5, command_timeout=10)
        try:
            transaction = connection.transaction()
            await transaction.start()
            body: dict[str, Any] = operation.body or {}
            client = self._clients[operation.tenant]
            run = await client.submit(body["handler"], body["payload"], connection=connection)
            operation.answer = {"runId": run.id}
            if fate == "rollback":
                await transaction.rollback()
                return
            if isinstance(fate, Mode):
                await self._proxies.set(CLIENT, fate)
            operation.outcome = Outcome.UNKNOWN
            await transaction.commit()
            operation.outcome = Outcome.OK
        finally:
            if isinstance(fate, Mode):
                await self._proxies.set(CLIENT, Mode.PASS)
            connection.terminate()


class Weigher:
    """Changes what tenants weigh: what they have queued is ranked anew under load, and nothing may get lost by it."""

    def __init__(self, api: Api, weigh: Callable[[str, int], Awaitable[None]], seed: int) -> None:
        self._api = api
        self._weigh = weigh
        self._chance = random.Random(f"{seed}/weights")  # noqa: S311 - guards nothing

    async def step(self) -> None:
        tenant, weight = self._chance.choice(TENANTS), self._chance.randint(1, 9)
        operation = Operation(
            number=self._api.number(),
            client=NUMBER + 1,
            tenant=tenant,
            kind="weighTenant",
            invoked=time.time(),
            completed=0.0,
            outcome=Outcome.UNKNOWN,
            body={"weight": weight},
        )
        try:
            await self._weigh(tenant, weight)
            operation.outcome = Outcome.OK
        except RuntimeError:
            pass
        finally:
            operation.completed = time.time()
            self._api.write(operation)
