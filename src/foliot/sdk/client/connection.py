# Written by `make sdk` from sdk/aio/connection.py: change that.
"""What every call goes through: it is sent until it is answered, and its lists come page by page."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from foliot.sdk import calls, protocol
from foliot.sdk.client.pages import Items
from foliot.sdk.client.transport import Transport, pause
from foliot.sdk.errors import ApiError
from foliot.sdk.protocol import Request
from foliot.sdk.retrying import Patience, Tries

Item = TypeVar("Item")


class Connection:
    """Talks to one Foliot with one key.

    A call takes `timeout` seconds at most. Meanwhile it is sent again, up to `max_retries` times, if nobody answers or
    the answer is "not now", after a pause: what Foliot asks for, or a random one that grows. Changes carry an
    idempotency key, so that one which was sent twice is made once.
    """

    def __init__(
        self, url: str | None = None, key: str | None = None, *, timeout: float = 30, max_retries: int = 3
    ) -> None:
        self._access = protocol.access_or_fail(url, key)
        self._patience = Patience(timeout, max_retries)
        self._transport = Transport(self._access)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept open. The next call opens one again."""
        self._transport.close()

    def request(self, request: Request, *, within: float | None = None) -> Any:
        """What the API answers to it, decoded; for calls that have no method of their own yet.

        It takes `timeout` seconds at most, or `within` if that is less.
        """
        tries = Tries(request, self._patience.at_most(within))
        while True:
            try:
                return protocol.unpack(self._transport.send(tries.request, tries.time_left))
            except ApiError as error:
                seconds = tries.pause_after(error)
            pause(seconds)

    def _page(self, made: Callable[[dict[str, Any]], Item], *parts: str, **query: Any) -> Items[Item]:
        """One page of what is listed there, each item as it is `made` of its values."""
        answer = self.request(calls.get(*parts, **calls.span(query)))

        def following(cursor: str) -> Items[Item]:
            return self._page(made, *parts, **{**query, "cursor": cursor})

        return Items(map(made, answer["items"]), answer["nextCursor"], following)
