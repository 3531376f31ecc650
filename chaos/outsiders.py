"""Clients whose runs want out: to an address that handlers may not call, and with a secret that nobody may keep."""

import secrets
from typing import Any, Final

from chaos.client import Api
from chaos.desk import Desk
from chaos.records import CONFIDED, CONFIDENCE, CONFIDING, Outcome

CLIENT: Final = 148
BATCHES: Final = 4
"""Batches that are handed in before the secret has another value."""


class Trespasser:
    """Hands in runs whose target is there, and is denied to handlers."""

    def __init__(self, api: Api, seed: int, target: str) -> None:
        self._desk = Desk(api, seed, CLIENT)
        self._target = target

    async def step(self) -> None:
        await self._desk.insist("createRun", body=self._desk.run(handler=self._target), key=self._desk.key())


class Gossip:
    """Hands in runs whose handlers are given a secret, and say it: in a result, in an error, in the log."""

    def __init__(self, api: Api, seed: int, target: str) -> None:
        self._desk = Desk(api, seed, CLIENT + 1, CONFIDING)
        self._target = target
        self._turn = 0
        self._serial = 0

    async def step(self) -> None:
        if self._turn % BATCHES == 0:
            value = f"{CONFIDED}{self._turn}.{secrets.token_hex(8)}"
            if (await self._desk.insist("putSecret", body={"value": value})).outcome is not Outcome.OK:
                return
        self._turn += 1
        runs = [
            self._run("quick"),
            self._run("caged"),
            self._run(self._target),
            self._run("flaky", fail=9),
            self._run(self._target, fail=9),
        ]
        await self._desk.insist("createRuns", body={"runs": runs}, key=self._desk.key())

    def _run(self, handler: str, **more: Any) -> dict[str, Any]:
        self._serial += 1
        payload = {
            "tenant": CONFIDING,
            "serial": f"{self._desk.client}.{self._serial}",
            "secret": {"$secret": CONFIDENCE},
        }
        return {"handler": handler, "payload": payload | more, "maxRetries": 0}
