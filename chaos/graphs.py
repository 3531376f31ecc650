"""A client that weaves jobs into graphs: a diamond with an alarm, fired by a schedule, started by hand, or run once."""

import random
from typing import Any, Final

from chaos.chores import FIRST, ON_THE_WEB, Caller
from chaos.records import Outcome

LONG_AGO: Final = "2026-01-01T00:00:00Z"
"""A one-time job of that instant runs at once."""
ON_DEMAND: Final = "on demand"
TRIGGERS: Final[dict[str, dict[str, Any]]] = {
    "fired": {"every": "PT2S", "overlap": "allow"},
    ON_DEMAND: {},
}


class Weaver:
    def __init__(self, caller: Caller, seed: int, number: int, tenant: str, target: str) -> None:
        """`target`: the address of HTTP handlers."""
        self._caller = caller
        self._target = target
        self._client = FIRST + 80 + number
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/graphs/{number}")  # noqa: S311 - guards nothing
        self._seed = seed
        self._serial = 0
        self._tops: dict[str, str] = {}
        """What is run first of each graph that lasts."""

    async def step(self) -> None:
        """Make the graphs that last; then start one by hand, or weave another that runs once."""
        for name, trigger in TRIGGERS.items():
            if name not in self._tops and (made := await self._weave(name, trigger)):
                self._tops[name] = made
        if ON_DEMAND in self._tops and self._chance.random() < 0.7:
            top, key = self._tops[ON_DEMAND], self._key()
            await self._caller.insist(self._client, self._tenant, "runJob", top, None, key)
        else:
            await self._weave(f"once {self._serial}", {"scheduleAt": LONG_AGO})

    async def _weave(self, name: str, trigger: dict[str, Any]) -> str | None:
        """All its jobs in one call; the id of the top if it was answered."""
        dice = self._chance
        name = f"{name} of {self._client}".replace(" ", "-")
        # What fails dies at once, and is well again when somebody lets it go on.
        doomed = dice.random() < 0.5
        bodies = [
            self._job(f"{name}-top", **trigger),
            self._job(f"{name}-left", f"{name}-top", fail=int(doomed)),
            self._job(f"{name}-right", f"{name}-top", slow=dice.choice((0.0, round(dice.uniform(0.0, 0.3), 2)))),
            self._job(f"{name}-join", f"{name}-left", f"{name}-right"),
            self._job(f"{name}-alarm", {"job": f"{name}-left", "when": "failed"}),
            self._job(f"{name}-after", {"job": f"{name}-left", "when": "done"}, f"{name}-right"),
        ]
        key = self._key()
        done = await self._caller.insist(self._client, self._tenant, "createJobs", None, {"jobs": bodies}, key)
        return None if done.outcome is not Outcome.OK or done.answer is None else done.answer["jobIds"][0]

    def _job(self, key: str, *parents: Any, fail: int = 0, slow: float = 0.0, **more: Any) -> dict[str, Any]:
        self._serial += 1
        what = {name: value for name, value in (("fail", fail), ("slow", slow)) if value}
        payload = {"tenant": self._tenant, "serial": f"{self._client}.{self._serial}", **what}
        handler = "quick" if self._serial % ON_THE_WEB else self._target
        body = {"name": key, "key": key, "handler": handler, "payload": payload, "maxRetries": 0, **more}
        return body | {"dependsOn": list(parents)} if parents else body

    def _key(self) -> str:
        self._serial += 1
        return f"graphs{self._seed}-{self._client}-{self._serial}"
