"""What is done for many at once must not fail for all because a stranger stands in the way of one."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from foliot.store.recovery import is_contended

_Ask = TypeVar("_Ask")
_Answer = TypeVar("_Answer")


async def together_or_apart(
    act: Callable[[Sequence[_Ask]], Awaitable[Sequence[_Answer | Exception]]], asks: Sequence[_Ask]
) -> list[_Answer | Exception]:
    """Do all in one go; if that runs into somebody's lock, one by one, so that only those fail who meet it."""
    try:
        return list(await act(asks))
    except Exception as error:
        if not is_contended(error) or len(asks) == 1:
            raise
    answers: list[_Answer | Exception] = []
    for ask in asks:
        try:
            answers += await act([ask])
        except Exception as error:
            if not is_contended(error):
                raise
            answers.append(error)
    return answers
