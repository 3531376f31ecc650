"""A client that runs commands: short ones, such as leave somebody behind, and such as must be ended."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Final

from chaos.cancels import FOR_LONG
from chaos.chores import FIRST, Caller
from chaos.plan import LONG, ONCE, QUICKLY

SELDOM: Final = 3.0
"""Seconds between two batches of commands of one tenant: each takes a process or two."""
LONG_EVERY: Final = 8
"""One batch in so many has a command that takes longer than a lease."""


def is_command(body: dict[str, Any]) -> bool:
    """Whether a job or a run of this definition is one."""
    handler = body.get("handler")
    return isinstance(handler, dict) and handler.get("type") == "command"


class Commander:
    def __init__(self, caller: Caller, seed: int, number: int, tenant: str, argv: Sequence[str]) -> None:
        """`argv`: the command that does what its payload says."""
        self._caller = caller
        self._client = FIRST + 150 + number
        self._tenant = tenant
        self._chance = random.Random(f"{seed}/commands/{number}")  # noqa: S311 - guards nothing
        self._seed = seed
        self._argv = list(argv)
        self._batches = 0
        self._usual = 0
        self._serial = 0
        self._left: list[str] = []

    async def step(self) -> None:
        """Hand in one batch, and cancel what would not end in every other."""
        dice, self._batches = self._chance, self._batches + 1
        runs = [
            self._run(
                slow=round(dice.uniform(0.0, 0.4), 2), fail=dice.choice((0, 0, 1)), maxRetries=2, backoff=QUICKLY
            ),
            self._run(leaves=True, slow=round(dice.uniform(0.1, 0.6), 2)),
            *([self._run(slow=round(dice.uniform(*LONG), 2), leaves=True)] if self._batches % LONG_EVERY == 0 else []),
        ]
        for run in runs:
            self._usual += 1
            if self._usual % ONCE == 0:
                run["delivery"], run["maxRetries"] = "atMostOnce", 0
        # The one is not ended before it is too late for itself, the other when its owner says so.
        doomed = self._batches % 2
        if doomed:
            runs.append(self._run(slow=FOR_LONG, leaves=True, deaf=True, timeoutSeconds=3.0, maxRetries=0))
        else:
            runs.append(self._run(slow=FOR_LONG, leaves=True, maxRetries=0))
        key = f"commands{self._seed}-{self._client}-{self._batches}"
        done = await self._caller.insist(self._client, self._tenant, "createRuns", None, {"runs": runs}, key)
        if done.answer is not None and not doomed:
            self._left.append(done.answer["runIds"][-1])
            await asyncio.sleep(dice.uniform(0.5, 2.0))
            await self.finish()

    async def finish(self) -> None:
        """Cancel what would keep everybody waiting."""
        for name in self._left[:]:
            await self._caller.insist(self._client, self._tenant, "cancelRun", None, run=name)
            self._left.remove(name)

    def _run(
        self, *, slow: float, fail: int = 0, leaves: bool = False, deaf: bool = False, **more: Any
    ) -> dict[str, Any]:
        self._serial += 1
        what = {"slow": slow, "fail": fail, "leaves": leaves, "deaf": deaf}
        payload: dict[str, Any] = {"tenant": self._tenant, "serial": f"{self._client}.{self._serial}"}
        payload |= {name: value for name, value in what.items() if value}
        return {"handler": {"type": "command", "argv": self._argv}, "payload": payload, **more}
