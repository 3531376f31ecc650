"""A client that uses an idempotency key once more, for something else: it must be told that it may not."""

from typing import Any, Final

from chaos.chores import FIRST, Caller
from chaos.records import Outcome

TRIES: Final = 2
"""Times that the other request is sent under the key: each API is asked once."""


class Reuser:
    """Hands in a run, or makes a job, and then wants another one under the same key; then asks for the first again."""

    def __init__(self, caller: Caller, seed: int, number: int, tenant: str) -> None:
        self._caller = caller
        self._client = FIRST + 170 + number
        self._tenant = tenant
        self._seed = seed
        self._serial = 0

    async def step(self) -> None:
        body, key = self._body(), f"reused{self._seed}-{self._client}-{self._serial}"
        kind = "createJob" if self._serial % 2 else "createRun"
        if kind == "createJob":
            body["name"] = f"made under {key}"
        done = await self._caller.insist(self._client, self._tenant, kind, None, body, key)
        if done.outcome is not Outcome.OK or done.answer is None:
            return  # nobody knows whether the key stands for anything
        for _ in range(TRIES):
            other = body | {"payload": self._body()["payload"]}
            await self._caller.insist(self._client, self._tenant, kind, None, other, key)
        await self._caller.insist(self._client, self._tenant, kind, None, body, key)
        if kind == "createJob":
            await self._caller.insist(self._client, self._tenant, "cancelJob", done.answer["jobId"])

    def _body(self) -> dict[str, Any]:
        self._serial += 1
        payload = {"tenant": self._tenant, "serial": f"{self._client}.{self._serial}"}
        return {"handler": "quick", "payload": payload}
