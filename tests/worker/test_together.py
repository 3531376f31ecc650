"""What a remote worker tells and asks at the same moment goes in one call; what goes wrong with it is asked apart."""

import asyncio
from typing import Any

import pytest

from foliot.domain.errors import FoliotError
from foliot.store.recovery import OutOfReach
from foliot.wire.work import ClaimAnswer, ClaimBody, RunColumns, SettleAnswer, SettleBody
from foliot.worker.gateway.together import Together

CLAIM = ClaimBody("wrk_1", 7, [1], [5], 5)
ENDINGS = SettleBody("wrk_1", forget=[3])
NOTHING = ClaimAnswer(RunColumns(*([] for _ in range(12))), [], {})


class Gateway:
    """Answers calls, or fails those for both at once."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.calls: list[tuple[str, Any]] = []

    async def __call__(self, name: str, body: Any, _: Any) -> Any:
        self.calls.append((name, body))
        await asyncio.sleep(0)
        if name == "settle":
            return SettleAnswer()
        if self.failure is not None:
            raise self.failure
        return ClaimAnswer(NOTHING.runs, [], {}, settled=SettleAnswer())


@pytest.mark.parametrize("claims_first", [True, False])
async def test_a_claim_and_endings_of_one_moment_share_a_call_that_does_not_wait(claims_first: bool):
    gateway = Gateway()
    together = Together(gateway)
    both = [together.claim(CLAIM), together.settle(ENDINGS)]
    answers = await asyncio.gather(*(both if claims_first else reversed(both)))
    ((name, body),) = gateway.calls
    assert (name, body.number, body.wait, body.settle) == ("claim", 7, 0.0, ENDINGS)
    assert {type(each) for each in answers} == {ClaimAnswer, SettleAnswer}


async def test_a_claim_without_endings_is_left_to_itself():
    gateway = Gateway()
    together = Together(gateway)
    assert await together.claim(CLAIM) is None
    await together.settle(ENDINGS)
    assert gateway.calls == [("settle", ENDINGS)]


async def test_what_fails_together_is_told_apart():
    gateway = Gateway(FoliotError("one of the two"))
    together = Together(gateway)
    assert await asyncio.gather(together.claim(CLAIM), together.settle(ENDINGS)) == [None, SettleAnswer()]
    assert [name for name, _ in gateway.calls] == ["claim", "settle"]


async def test_endings_that_reach_nobody_are_not_told_twice_in_a_row():
    gateway = Gateway(OutOfReach("nobody there"))
    together = Together(gateway)
    claimed, settled = await asyncio.gather(together.claim(CLAIM), together.settle(ENDINGS), return_exceptions=True)
    assert claimed is None
    assert isinstance(settled, OutOfReach)
    assert len(gateway.calls) == 1


async def test_a_settlement_that_is_given_up_lets_its_claim_go_on():
    together = Together(Gateway())
    settling = asyncio.ensure_future(together.settle(ENDINGS))
    claiming = asyncio.ensure_future(together.claim(CLAIM))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # both are under way in one call
    settling.cancel()
    assert await claiming is None
