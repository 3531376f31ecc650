"""A client that thinks better of it: hands in runs and cancels them, wherever they are by then."""

import asyncio
import random
from typing import Any, Final

from chaos.chores import FIRST, Caller
from chaos.plan import QUICKLY
from chaos.records import LIMITS

VICTIMS: Final = 6
FAR_AWAY: Final = 90.0
"""Seconds: such a run is kept apart from those that are soon due."""
FOR_LONG: Final = 24.0
"""Seconds: longer than a run may take to stop."""


class Fickle:
    def __init__(self, caller: Caller, seed: int, number: int, tenant: str, victims: int = VICTIMS) -> None:
        """`victims`: runs of each batch."""
        self._caller = caller
        self._client = FIRST + 70 + number
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/fickle/{number}")  # noqa: S311 - guards nothing
        self._seed = seed
        self._victims = victims
        self._serial = 0
        self._asked: tuple[str, list[dict[str, Any]]] | None = None
        self._left: list[str] = []

    async def step(self) -> None:
        """One batch, most of which is cancelled: at once, when it has begun, or when it is about to end."""
        dice, self._serial = self._chance, self._serial + 1
        key = f"fickle{self._seed}-{self._client}-{self._serial}"
        self._asked = key, [self._run() for _ in range(self._victims)]
        names = await self._hand_in()
        if not names:
            return
        await asyncio.sleep(dice.choice((0.0, dice.uniform(0.0, 0.4), dice.uniform(0.3, 1.2))))
        for name in names:
            if name in self._left or dice.random() < 0.9:
                await self._cancel(name)

    async def finish(self) -> None:
        """Cancel what would keep everybody waiting; whoever was told to stop in mid-call asks again what came of it."""
        await self._hand_in()
        for name in self._left[:]:
            await self._cancel(name)

    async def _hand_in(self) -> list[str]:
        if self._asked is None:
            return []
        key, runs = self._asked
        done = await self._caller.insist(self._client, self._tenant, "createRuns", None, {"runs": runs}, key)
        names: list[str] = [] if done.answer is None else done.answer["runIds"]
        self._asked = None
        self._left += [name for name, run in zip(names, runs, strict=bool(names)) if _goes_on(run)]
        return names

    async def _cancel(self, run: str) -> None:
        await self._caller.insist(self._client, self._tenant, "cancelRun", None, run=run)
        if run in self._left:
            self._left.remove(run)

    def _run(self) -> dict[str, Any]:
        dice, self._serial = self._chance, self._serial + 1
        payload: dict[str, Any] = {"tenant": self._tenant, "serial": f"{self._client}.{self._serial}"}
        payload["slow"] = round(dice.choice((0.0, dice.uniform(0.1, 1.0), 2.0)), 2)
        run: dict[str, Any] = {"handler": "slow", "payload": payload, "onDisconnect": "stop"}
        match dice.randrange(7):
            case 0:
                run["delay"] = dice.choice((0.5, 2.0, FAR_AWAY))
            case 1:  # it waits for its next attempt, or is about to need one
                payload |= {"fail": 2, "slow": dice.choice((0.0, 0.4))}
                run |= {"maxRetries": 3, "backoff": {**QUICKLY, "initial": "PT1S"}}
            case 2 | 3:  # it waits for its turn, or others wait for it
                payload["account"] = "of the fickle"
                limit = {"limit": LIMITS["strict"], "key": "payload.account"}
                run |= {"handler": "strict", "concurrency": limit}
            case 4:  # whoever does not stop it is found out
                payload["slow"] = FOR_LONG
            case _:
                pass
        return run


def _goes_on(run: dict[str, Any]) -> bool:
    """Whether everybody would have to wait for it."""
    return run.get("delay") == FAR_AWAY or run["payload"]["slow"] == FOR_LONG
