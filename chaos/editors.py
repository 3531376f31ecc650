"""Clients that change one job at the same time, and clients that want more jobs than their tenant may have."""

import asyncio
from typing import Final

from chaos.chores import UNANSWERED
from chaos.client import Api, Held
from chaos.desk import Desk
from chaos.records import MOST_JOBS, Operation, Outcome

CLIENT: Final = 145
ROUNDS: Final = 4
"""Times that one job is fought over."""
APPLICANTS: Final = MOST_JOBS + 3


class Rivals:
    """Two who have read the same version of a job change it, each only that version; and a stranger tries as well."""

    def __init__(self, api: Api, seed: int, stranger: Held) -> None:
        self._desk = Desk(api, seed, CLIENT)
        self._stranger = stranger
        self._turn = 0

    async def step(self) -> None:
        self._turn += 1
        body = self._desk.run(name=f"fought over {self._turn}")
        made = await self._desk.insist("createJob", body=body, key=self._desk.key())
        if made.outcome is not Outcome.OK or made.answer is None:
            return  # there is no room for it just now
        job, version = made.answer["jobId"], made.answer["version"]
        for _ in range(ROUNDS):
            both = await asyncio.gather(self._edit(job, version), self._edit(job, version))
            await self._desk.insist("runJob", job=job, key=self._desk.key())
            try:
                version = await self._version(job, both)
            except UNANSWERED:
                break
        await self._desk.call("changeJob", job=job, body={"maxRetries": 1}, by=self._stranger)
        await self._desk.insist("cancelJob", job=job)

    async def _edit(self, job: str, version: int) -> Operation:
        return await self._desk.call("changeJob", job=job, body={"payload": self._desk.run()["payload"]}, match=version)

    async def _version(self, job: str, edits: list[Operation] | tuple[Operation, ...]) -> int:
        told = [each.answer["version"] for each in edits if each.answer is not None]
        found: int = max(told) if told else (await self._desk.read(f"/v1/jobs/{job}"))["version"]
        return found


class Applicants:
    """Ask for more jobs at once than there may be; whoever has got one gives it back."""

    def __init__(self, api: Api, seed: int) -> None:
        self._desk = Desk(api, seed, CLIENT + 1)

    async def step(self) -> None:
        made = await asyncio.gather(*(self._apply(number) for number in range(APPLICANTS)))
        for each in made:
            if each.outcome is Outcome.OK and each.answer is not None:
                await self._desk.insist("cancelJob", job=each.answer["jobId"])

    async def _apply(self, number: int) -> Operation:
        key = self._desk.key()
        body = self._desk.run(name=f"applied for with {key}.{number}")
        return await self._desk.insist("createJob", body=body, key=key)


class Locksmith:
    """Gives the tenant a new data key while its payloads are under way."""

    def __init__(self, api: Api, seed: int) -> None:
        self._desk = Desk(api, seed, CLIENT + 2)

    async def step(self) -> None:
        await self._desk.insist("rotateEncryption")
