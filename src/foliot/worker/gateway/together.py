"""Endings and the next claim go in one call if they come at the same moment, as they do when handlers are quick."""

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from foliot.store.recovery import OutOfReach
from foliot.wire.work import ClaimAnswer, ClaimBody, SettleAnswer, SettleBody

_Answer = TypeVar("_Answer")


class Post(Protocol):
    def __call__(self, name: str, body: msgspec.Struct, kind: type[_Answer], /) -> Awaitable[_Answer]: ...


class _Claim(NamedTuple):
    body: ClaimBody
    answer: "asyncio.Future[ClaimAnswer | None]"


class Together:
    """One worker's settlements, with which its claims may travel.

    What goes wrong with a call for both is found out by a call for each: claims and settlements may be repeated.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._claim: _Claim | None = None

    async def claim(self, body: ClaimBody) -> ClaimAnswer | None:
        """The answer to a claim that travelled with endings, which does not wait for work; none if it did not."""
        claim = self._claim = _Claim(body, asyncio.get_running_loop().create_future())
        await asyncio.sleep(0)
        if self._claim is claim:
            self._claim = None
            return None
        return await claim.answer

    async def settle(self, body: SettleBody) -> SettleAnswer:
        if self._claim is None:
            await asyncio.sleep(0)  # this moment's claim may still come
        claim, self._claim = self._claim, None
        answer = None if claim is None else await self._both(claim, body)
        return answer if answer is not None else await self._post("settle", body, SettleAnswer)

    async def _both(self, claim: _Claim, body: SettleBody) -> SettleAnswer | None:
        """None if the endings are to be told again by themselves."""
        answer: ClaimAnswer | None = None
        both = msgspec.structs.replace(claim.body, wait=0.0, settle=body)
        try:
            answer = await self._post("claim", both, ClaimAnswer)
        except OutOfReach:
            raise
        except Exception:  # noqa: BLE001 - a call by itself says whose fault it was
            return None
        finally:
            if not claim.answer.done():
                claim.answer.set_result(answer)
        return answer.settled
