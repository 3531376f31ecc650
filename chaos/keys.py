"""Clients that are given keys, lose them, and try them all the same; and one whose key is slow."""

import asyncio
from typing import Any, Final

from chaos.client import Api, Held
from chaos.desk import Desk
from chaos.records import PACE, Operation, Outcome

CLIENT: Final = 140
OVERLAP: Final = "PT3S"
"""How long a key goes on that was replaced by another."""
KEEPS_TRYING: Final = 6
"""Times that a key is tried while a process may still believe in it, a second apart: it goes longer than that."""
AFTERWARDS: Final = 4
"""Times that it is tried when none may: more than there are APIs, which take turns."""
OF_ADMINS: Final = ["jobs:read", "jobs:write", "runs:read", "runs:write", "keys:read", "keys:write"]
"""Scopes that an admin has itself: asked for with the role of an operator, they would reach every tenant."""
ELSEWHERE: Final = "acme"
"""Another tenant than theirs."""
HASTE: Final = 12
"""Calls at once of the slow key."""


class Keymaster:
    """Makes a key, replaces it by another, revokes that; each is used before, meanwhile and afterwards.

    Others try to rise, and to break in.
    """

    def __init__(self, api: Api, seed: int, number: int = 0) -> None:
        self._desk = Desk(api, seed, CLIENT + number)
        self._turn = 0

    async def step(self) -> None:
        self._turn += 1
        name = f"key {self._desk.client}.{self._turn}"
        made = await self._desk.insist("createKey", body={"name": name, "role": "editor"}, key=self._desk.key())
        if made.outcome is not Outcome.OK:
            return
        former = _held(made.answer)
        await self._use(former, AFTERWARDS)
        await self._desk.call(
            "createKey", body={"name": f"{name}, by itself"}, by=former
        )  # its role does not reach so far
        await self._rise(name)
        await self._break_in(name, former)
        rotated = await self._rotate(former)
        if rotated is None:
            return
        await self._use(rotated, AFTERWARDS)
        revoked = await self._desk.insist("revokeKey", thing=rotated.name)
        for _ in range(KEEPS_TRYING):
            await self._use(rotated, 1)
            await asyncio.sleep(1.0)
        if revoked.outcome is Outcome.OK:
            await self._use(rotated, AFTERWARDS)
            await self._use(former, AFTERWARDS)

    async def _rise(self, name: str) -> None:
        """An admin that asks for a key of a role above its own, and is revoked for it."""
        if admin := await self._admin(f"{name}, admin"):
            body = {"name": f"{name}, risen", "role": "operator", "scopes": OF_ADMINS}
            await self._desk.call("createKey", body=body, by=admin)
            await self._desk.insist("revokeKey", thing=admin.name)

    async def _break_in(self, name: str, key: Held) -> None:
        """An admin of another tenant that wants to end a key of this one."""
        if intruder := await self._admin(f"{name}, intruder", tenant=ELSEWHERE):
            await self._desk.call("revokeKey", thing=key.name, by=intruder)
            await self._desk.insist("revokeKey", thing=intruder.name)

    async def _admin(self, name: str, **more: str) -> Held | None:
        body = {"name": name, "role": "admin", **more}
        made = await self._desk.insist("createKey", body=body, key=self._desk.key())
        return _held(made.answer) if made.outcome is Outcome.OK else None

    async def _rotate(self, key: Held) -> Held | None:
        body, again = {"overlap": OVERLAP}, self._desk.key()
        done = await self._desk.insist("rotateKey", thing=key.name, body=body, key=again)
        return None if done.outcome is not Outcome.OK else _held((done.answer or {})["key"])

    async def _use(self, key: Held, times: int) -> None:
        for _ in range(times):
            await self._desk.call("createRun", body=self._desk.mortal(), by=key)


class Hasty:
    """Calls faster with its key than the key may."""

    def __init__(self, api: Api, seed: int) -> None:
        self._desk = Desk(api, seed, CLIENT + 2)
        self._key: Held | None = None

    async def step(self) -> None:
        if self._key is None:
            body = {"name": "slow", "role": "editor", "rateLimit": PACE}
            made = await self._desk.insist("createKey", body=body, key=self._desk.key())
            if made.outcome is not Outcome.OK:
                return
            self._key = _held(made.answer)
        await asyncio.gather(*(self._hand_in(self._key) for _ in range(HASTE)))

    async def _hand_in(self, key: Held) -> Operation:
        return await self._desk.call("createRun", body=self._desk.mortal(), by=key)


def _held(answer: dict[str, Any] | None) -> Held:
    made = answer or {}
    return Held(made["keyId"], made["key"])
