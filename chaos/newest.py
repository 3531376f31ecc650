"""A client that wants of each of its jobs only the newest run: one that is still going makes way for the next."""

import random
from collections.abc import Sequence
from typing import Any, Final

from chaos.chores import FIRST, Caller
from chaos.plan import QUICKLY
from chaos.records import Outcome

FUNCTION, COMMAND = "function", "command"
FOR_AGES: Final = 40.0
"""Seconds: by then whoever did not make way is found out."""
PERIODS: Final = {FUNCTION: "PT3S", COMMAND: "PT6S"}
_SLOW: Final = (0.3, 2.9, FOR_AGES, FOR_AGES)
"""Seconds that a run takes: some are through before the next comes, some are just about to be, most never would."""


class Newest:
    def __init__(self, caller: Caller, seed: int, number: int, tenant: str, argv: Sequence[str] = ()) -> None:
        """`argv`: the command that does what its payload says; without it there are only functions."""
        self._caller = caller
        self._client = FIRST + 160 + number
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/newest/{number}")  # noqa: S311 - guards nothing
        self._seed = seed
        self._handlers: dict[str, Any] = {FUNCTION: "slow"}
        if argv:
            self._handlers[COMMAND] = {"type": "command", "argv": list(argv)}
        self._serial = 0
        self._jobs: dict[str, str] = {}

    async def step(self) -> None:
        """Make the jobs; then, now and then, change how long the runs of one take."""
        for kind in self._handlers:
            if kind not in self._jobs:
                await self._create(kind)
        if self._jobs and self._chance.random() < 0.25:
            job = self._jobs[self._chance.choice(sorted(self._jobs))]
            await self._caller.insist(self._client, self._tenant, "changeJob", job, {"payload": self._payload()})

    async def _create(self, kind: str) -> None:
        body = {
            "name": f"the newest {kind} of {self._client}",
            "handler": self._handlers[kind],
            "payload": self._payload(FOR_AGES),
            "every": PERIODS[kind],
            "overlap": "cancelPrevious",
            "onDisconnect": "stop",
            "backoff": QUICKLY,
        }
        key = f"newest{self._seed}-{self._client}-{kind}"
        done = await self._caller.insist(self._client, self._tenant, "createJob", None, body, key)
        if done.outcome is Outcome.OK and done.answer is not None:
            self._jobs[kind] = done.answer["jobId"]

    def _payload(self, slow: float | None = None) -> dict[str, Any]:
        self._serial += 1
        slow = self._chance.choice(_SLOW) if slow is None else slow
        return {"tenant": self._tenant, "serial": f"{self._client}.{self._serial}", "slow": slow}
