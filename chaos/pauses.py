"""A client that pauses jobs of which something is still to come: a retry, a later run, one in a worker's hands."""

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from chaos.chores import FIRST, Caller
from chaos.records import Outcome

CLOG: Final = 45
"""Runs of one job, more than some workers have hands."""
AHEAD: Final = 1.5
"""Seconds in which they can all be handed in."""


class Pauser:
    def __init__(
        self, caller: Caller, seed: int, tenant: str, holds: float, now: Callable[[], float], *, clog: bool = False
    ) -> None:
        """`holds`: seconds after which a pause holds. `clog`: workers are kept busy for longer than that."""
        self._caller = caller
        self._client = FIRST + 185
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/pauses")  # noqa: S311 - guards nothing
        self._seed = seed
        self._holds = holds
        self._now = now
        self._clog = clog
        self._serial = 0

    async def step(self) -> None:
        """Pause a job with runs in three places, for longer than it takes to hold; then let it go on, or end it."""
        far = round(3 * self._holds, 2)
        policy = {"maxRetries": 2, "backoff": {"initial": far, "factor": 1.0, "max": far}}
        job = await self._create("one that fails", **policy, slow=0.5, fail=1)
        if job is None:
            return
        others = await self._create("one that waits", slow=round(1.6 * self._holds, 2)) if self._clog else None
        for _ in range(3):
            await self._tell("runJob", job, key=self._key())
        at = datetime.fromtimestamp(self._now() + 1.5 * self._holds, UTC).isoformat()
        await self._tell("runJob", job, {"runAt": at}, self._key())
        paused = [each for each in (job, others) if each is not None]
        if others is not None:
            await self._hand_out(others)
        for each in reversed(paused):
            await self._tell("pauseJob", each)
        await asyncio.sleep(self._chance.uniform(2.0, 3.0) * self._holds)
        for each in paused:
            await self._tell(self._chance.choice(("resumeJob", "resumeJob", "cancelJob")), each)

    async def _hand_out(self, job: str) -> None:
        """All its runs come at once: workers have taken more than they can begin when it is paused."""
        at = self._now() + AHEAD
        body = {"runAt": datetime.fromtimestamp(at, UTC).isoformat()}
        for _ in range(CLOG):
            await self._tell("runJob", job, body, self._key())
        await asyncio.sleep(max(0.0, at - self._now()) + self._chance.uniform(0.1, 0.6))

    async def _create(self, name: str, *, slow: float = 0.0, fail: int = 0, **more: Any) -> str | None:
        body = {"name": f"{name}, {self._client}.{self._serial}", **self._run(slow=slow, fail=fail), **more}
        done = await self._caller.insist(self._client, self._tenant, "createJob", None, body, self._key())
        return None if done.outcome is not Outcome.OK or done.answer is None else done.answer["jobId"]

    def _run(self, *, slow: float = 0.0, fail: int = 0) -> dict[str, Any]:
        self._serial += 1
        what = {name: value for name, value in (("slow", slow), ("fail", fail)) if value}
        payload = {"tenant": self._tenant, "serial": f"{self._client}.{self._serial}", **what}
        return {"handler": "slow", "payload": payload}

    async def _tell(self, kind: str, job: str, body: dict[str, Any] | None = None, key: str | None = None) -> None:
        await self._caller.insist(self._client, self._tenant, kind, job, body, key)

    def _key(self) -> str:
        self._serial += 1
        return f"pauses{self._seed}-{self._client}-{self._serial}"
