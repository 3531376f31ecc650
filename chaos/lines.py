"""What clients hand in that must wait for each other: under limits of a key, of a job, of a tenant, and in queues."""

import random
from typing import Any, Final

from chaos.chores import FIRST, ON_THE_WEB, Caller
from chaos.plan import QUICKLY
from chaos.records import CROWDED, LIMITS, SIDE, Outcome

ACCOUNTS: Final = {"strict": 4, "pair": 2, "trio": 1}
"""How many accounts share what is handed in for a handler: few, so that somebody waits for somebody."""
BY_HAND: Final = "by hand"
ENDLESS: Final = {
    "queue": {"every": "PT2S", "overlap": "queue", "handler": "quick"},
    "queueOne": {"every": "PT1S", "overlap": "queueOne", "handler": "quick"},
    "key": {"every": "PT1S", "overlap": "allow", "handler": "strict"},
}
"""Jobs that go on for ever, and what takes longer than their period now and then."""
_SLOW: Final = {"queue": (1.2, 2.2), "queueOne": (0.7, 1.5), "key": (0.2, 1.2)}


class Lines:
    """Hands in runs under limits, so many that they wait, and looks after jobs whose runs wait for each other."""

    def __init__(self, caller: Caller, seed: int, number: int, tenant: str, target: str) -> None:
        """`target`: the address of HTTP handlers."""
        self._caller = caller
        self._number = number
        self._target = target
        self._client = FIRST + 40 + number
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/lines/{number}")  # noqa: S311 - guards nothing
        self._seed = seed
        self._serial = 0
        self._jobs: dict[str, str] = {}

    async def step(self) -> None:
        """Hand in one batch, start two by hand, and change a limit now and then."""
        dice = self._chance
        if len(self._jobs) <= len(ENDLESS):
            await self._create()
        runs = [self._run("strict") for _ in range(4)]
        runs += [self._run(name) for name in ("pair", "pair", "trio", "trio", "trio")]
        runs[0] |= {"delay": round(dice.uniform(0.1, 1.0), 2)}
        await self._caller.insist(self._client, self._tenant, "createRuns", None, {"runs": runs}, self._key())
        if BY_HAND in self._jobs:
            for _ in range(2):
                payload = self._payload(slow=round(dice.uniform(0.1, 0.6), 2))
                await self._tell("runJob", BY_HAND, {"payload": payload}, self._key())
            if dice.random() < 0.15:
                await self._tell("changeJob", BY_HAND, {"concurrency": {"limit": dice.randint(1, 3)}})

    async def _create(self) -> None:
        names = (BY_HAND, *ENDLESS)
        missing = [name for name in names if name not in self._jobs]
        for name in missing[:2]:
            body: dict[str, Any] = {"name": f"{name} of {self._client}", "onDisconnect": "stop"}
            if name == BY_HAND:
                body |= {"handler": "quick", "payload": self._payload(), "concurrency": {"limit": 2}}
            else:
                slow = round(self._chance.uniform(*_SLOW[name]), 2)
                body |= {**ENDLESS[name], "payload": self._payload(slow=slow), "backoff": QUICKLY}
            if body["handler"] in LIMITS:
                body["concurrency"] = {"limit": LIMITS[body["handler"]], "key": "payload.account"}
                body["payload"]["account"] = "1"
            if (self._number + names.index(name)) % 2:  # what is a function of one tenant is none of the other
                body["handler"] = self._target
            done = await self._caller.insist(self._client, self._tenant, "createJob", None, body, self._key())
            if done.outcome is Outcome.OK and done.answer is not None:
                self._jobs[name] = done.answer["jobId"]

    async def _tell(self, kind: str, job: str, body: dict[str, Any], key: str | None = None) -> None:
        await self._caller.insist(self._client, self._tenant, kind, self._jobs[job], body, key)

    def _run(self, handler: str) -> dict[str, Any]:
        dice, limit = self._chance, {"limit": LIMITS[handler], "key": "payload.account"}
        payload = self._payload(slow=round(dice.choice((0.0, dice.uniform(0.0, 0.4))), 2))
        payload["account"] = str(dice.randrange(ACCOUNTS[handler]))
        if handler == "strict" and dice.random() < 0.3:
            payload["fail"] = 1
        body: dict[str, Any] = {"handler": handler, "payload": payload, "concurrency": limit, "onDisconnect": "stop"}
        # What waits for its retry keeps its place: others of the account must not begin meanwhile.
        body |= {"maxRetries": 3, "backoff": QUICKLY}
        if self._serial % ON_THE_WEB == 0:
            # All addresses are one handler to a limit: no account may have two.
            body["handler"], payload["account"] = self._target, handler
        return body | {"queue": SIDE} if handler == "trio" and dice.random() < 0.3 else body

    def _payload(self, **more: Any) -> dict[str, Any]:
        self._serial += 1
        return {"tenant": self._tenant, "serial": f"{self._client}.{self._serial}", **more}

    def _key(self) -> str:
        self._serial += 1
        return f"lines{self._seed}-{self._client}-{self._serial}"


class Crowd:
    """Hands in more of one tenant than may go at once."""

    def __init__(self, caller: Caller, seed: int, target: str) -> None:
        """`target`: the address of HTTP handlers."""
        self._caller = caller
        self._target = target
        self._chance = random.Random(f"{seed}/crowd")  # noqa: S311 - guards nothing
        self._seed = seed
        self._serial = 0

    async def step(self) -> None:
        """Hand in one batch."""
        runs = [self._run() for _ in range(5)]
        key = f"crowd{self._seed}-{self._serial}"
        await self._caller.insist(FIRST + 60, CROWDED, "createRuns", None, {"runs": runs}, key)

    def _run(self) -> dict[str, Any]:
        dice, self._serial = self._chance, self._serial + 1
        payload: dict[str, Any] = {"tenant": CROWDED, "serial": f"{FIRST + 60}.{self._serial}"}
        payload["slow"] = round(dice.uniform(0.0, 0.4), 2)
        handler, priority = dice.choice(("quick", "slow")), dice.choice(("low", "normal", "high"))
        handler = handler if self._serial % ON_THE_WEB else self._target
        run = {"handler": handler, "payload": payload, "priority": priority, "onDisconnect": "stop"}
        return run if dice.random() < 0.8 else run | {"delay": round(dice.uniform(0.1, 0.8), 2)}
