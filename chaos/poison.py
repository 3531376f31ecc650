"""A run that kills whoever runs it: handed in by the nemesis, until the product has put it into quarantine."""

from pathlib import Path
from typing import Final

from chaos.chores import FIRST, UNANSWERED, Caller
from chaos.records import POISON, Effect, Phase, each_line

CLIENT: Final = FIRST + 30
OVER: Final = "failed"


class Poisoner:
    def __init__(self, caller: Caller, seed: int, tenant: str, ledger: Path) -> None:
        self._caller = caller
        self._seed = seed
        self._tenant = tenant
        self._ledger = ledger
        self._serial = 0

    async def hand_in(self) -> str | None:
        """The run; none if nobody took it."""
        self._serial += 1
        payload = {"tenant": self._tenant, "serial": f"{CLIENT}.{self._serial}"}
        key = f"poison{self._seed}-{self._serial}"
        body = {"handler": POISON, "payload": payload}
        done = await self._caller.insist(CLIENT, self._tenant, "createRun", None, body, key)
        return None if done.answer is None else str(done.answer["runId"])

    async def is_over(self, run: str) -> bool:
        try:
            return bool((await self._caller.read(self._tenant, f"/v1/runs/{run}"))["status"] == OVER)
        except UNANSWERED:
            return False

    def deaths(self, run: str) -> list[Effect]:
        """The starts that killed a worker, and not only a process of the run's own."""
        mine = (each for each in each_line(self._ledger, Effect, about=run) if each.run == run)
        return [each for each in mine if each.phase is Phase.START and not each.isolated]
