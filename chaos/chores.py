"""What clients do besides their plans: odd kinds of runs, dead letters, a queue that is paused.

Each chore has dice of its own, so that the plans of a seed stay what they were.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol

import aiohttp

from chaos.plan import LONG
from chaos.records import BOOKING, SIDE, Operation

FIRST: Final = 100
"""Numbers of the clients that do chores begin here."""
OFTEN: Final = 1.0
"""Seconds between two batches of odd runs of one tenant, and between two looks through its dead letters."""
ON_THE_WEB: Final = 3
"""One in so many of those who wait for others is an HTTP target."""
LONGEST_BOOKING: Final = 3.0
"""Seconds: the handlers of a worker share a few connections."""
UNANSWERED: Final = (aiohttp.ClientError, TimeoutError, OSError)
_DEEDS: Final = {"one": 4, "some": 4, "filter": 2, "discard": 2, "discardFilter": 1}


class Odd(NamedTuple):
    """How often there is what takes longer than a lease: one run in so many batches, none if 0."""

    patient_every: int = 12
    """Must end with the lease of its worker."""
    patient: tuple[float, float] = LONG
    caged_every: int = 0
    """In a process of its own, besides those of the plans."""


USUAL: Final = Odd()


class Caller(Protocol):
    """Whoever carries out calls, and asks again until there is an answer."""

    async def insist(
        self,
        client: int,
        tenant: str,
        kind: str,
        job: str | None,
        body: dict[str, Any] | None = None,
        key: str | None = None,
        run: str | None = None,
    ) -> Operation: ...

    async def read(self, tenant: str, path: str, **query: Any) -> Any: ...


class Oddities:
    """Hands in runs that snooze, that book their effect in the transaction of their success, that are hard to save."""

    def __init__(
        self, caller: Caller, seed: int, number: int, tenant: str, *, slowest: float, odd: Odd | None = None
    ) -> None:
        """Without `odd` there are no handlers with a database to write to, and none that outlast a lease."""
        self._caller = caller
        self._client = FIRST + number
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/odd/{number}")  # noqa: S311 - guards nothing
        self._slowest = slowest
        self._odd = odd
        self._batches = 0
        self._seed = seed
        self._serial = 0

    async def step(self) -> None:
        """Hand in one batch."""
        dice, slow, self._batches = self._chance, self._slowest, self._batches + 1
        runs = [
            self._run("snoozing", snooze=dice.choice((1, 1, 2))),
            *(self._run("slow", slow=round(dice.uniform(0.0, 0.5), 2), queue=SIDE) for _ in range(3)),
            # Used up at once, and busy for a while when they are let go on.
            self._run("flaky", slow=round(dice.uniform(0.0, slow), 2), fail=dice.choice((1, 9)), maxRetries=0),
        ]
        runs += [] if self._odd is None else self._heavy(self._odd)
        key = f"odd{self._seed}-{self._client}-{self._batches}"
        await self._caller.insist(self._client, self._tenant, "createRuns", None, {"runs": runs}, key)

    def _heavy(self, odd: Odd) -> list[dict[str, Any]]:
        dice, turn = self._chance, self._batches
        longest = min(self._slowest, LONGEST_BOOKING)
        runs = [self._run(booking, slow=round(dice.uniform(0.0, longest), 2)) for booking in BOOKING]
        runs.append(self._run(BOOKING[turn % 2], slow=0.1, fail=1, maxRetries=2))
        if odd.patient_every and turn % odd.patient_every == 0:
            runs.append(self._run("patient", slow=round(dice.uniform(*odd.patient), 2), onDisconnect="stop"))
        if odd.caged_every and turn % odd.caged_every == 0:
            runs.append(self._run("caged", slow=round(dice.uniform(*LONG), 2)))
        return runs

    def _run(self, handler: str, *, slow: float = 0.0, fail: int = 0, snooze: int = 0, **more: Any) -> dict[str, Any]:
        self._serial += 1
        what = {name: value for name, value in (("slow", slow), ("fail", fail), ("snooze", snooze)) if value}
        payload = {"tenant": self._tenant, "serial": f"{self._client}.{self._serial}", **what}
        return {"handler": handler, "payload": payload, **more}


class Mortician:
    """Looks through a tenant's dead letters: lets some go on, one by one or by a filter, and gives some up."""

    def __init__(self, caller: Caller, seed: int, number: int, tenant: str) -> None:
        self._caller = caller
        self._client = FIRST + 10 + number
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/letters/{number}")  # noqa: S311 - guards nothing
        self._seed = seed
        self._serial = 0

    async def step(self) -> None:
        dice, self._serial = self._chance, self._serial + 1
        deed = dice.choices(list(_DEEDS), list(_DEEDS.values()))[0]
        try:
            page = await self._caller.read(self._tenant, "/v1/dead-letters", limit=20)
        except UNANSWERED:
            return
        dead = [each["runId"] for each in page["items"]]
        if not dead:
            return
        match deed:
            case "one":
                await self._tell("retryRun", None, dice.choice(dead))
            case "some":
                await self._tell("replayLetters", {"runIds": dice.sample(dead, min(5, len(dead)))})
            case "filter":
                body = {"filter": {"handler": "flaky"}, "perSecond": 50, "concurrency": 20}
                await self._tell("replayLetters", body)
            case "discard":
                await self._tell("discardLetters", {"runIds": dice.sample(dead, min(2, len(dead)))})
            case _:
                await self._tell("discardLetters", {"filter": {"handler": dice.choice(("flaky", "stuck"))}})

    async def _tell(self, kind: str, body: dict[str, Any] | None, run: str | None = None) -> None:
        key = None if run is not None else f"letters{self._seed}-{self._client}-{self._serial}"
        await self._caller.insist(self._client, self._tenant, kind, None, body, key, run)


class Gatekeeper:
    """Pauses the side queue now and then, for longer than any worker may take to hear of it."""

    def __init__(self, caller: Caller, seed: int, tenant: str, holds: float) -> None:
        """`holds`: seconds after which a pause holds, whatever happens."""
        self._caller = caller
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/gate")  # noqa: S311 - guards nothing
        self._holds = holds

    async def step(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.1, 0.4) * self._holds)
        await self._tell("pauseQueue")
        await asyncio.sleep(self._chance.uniform(1.2, 1.5) * self._holds)
        await self.open()

    async def open(self) -> None:
        await self._tell("resumeQueue")

    async def _tell(self, kind: str) -> None:
        await self._caller.insist(FIRST + 20, self._tenant, kind, None)


async def again(step: Callable[[], Awaitable[object]], pause: float) -> None:
    """Do it again and again, with a pause after each time, until somebody breaks it off."""
    while True:
        await step()
        await asyncio.sleep(pause)
