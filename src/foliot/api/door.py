"""Who comes in when: rate limits and back-pressure, asked before an operation does anything."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from foliot.api.operation import Operation, Services
from foliot.services.pacing import headers
from foliot.store.keys import KeyOwner

_BUCKETS: Final = "foliot.buckets"
"""Where a request has what it takes from, if its caller has a rate limit."""


class Door:
    """The way into one operation."""

    __slots__ = ("_backlog", "_costs", "_is_paced", "_is_submission", "_pacing")

    def __init__(self, operation: Operation, services: Services) -> None:
        self._pacing, self._backlog = services.pacing, services.backlog
        self._is_paced, self._is_submission = operation.is_paced, operation.is_submission
        self._costs = operation.costs

    def let_in(self, request: Request, owner: KeyOwner) -> None:
        """TooMany or Swamped, before anything is read, if the caller is too fast or too much waits already."""
        if self._is_paced and (buckets := self._pacing.of(owner)):
            request.scope[_BUCKETS] = buckets
            self._pacing.admit(buckets)
        if self._is_submission:
            self._backlog.check(owner.tenant, owner.backlog)

    def charge(self, request: Request, body: Any) -> None:
        """TooMany if what the call hands in is more than its caller may just now; one was paid at the door."""
        if self._costs is not None and (buckets := request.scope.get(_BUCKETS)):
            self._pacing.admit(buckets, self._costs(body), paid=1)

    def tell(self, request: Request, response: Response) -> None:
        """Say what is left of the caller's limit, if it has one."""
        if buckets := request.scope.get(_BUCKETS):
            response.raw_headers.extend(headers(buckets))
