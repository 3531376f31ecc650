"""Who comes in when: rate limits and back-pressure, asked before an operation does anything."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from foliot.api.operation import Operation, Services
from foliot.services.pacing import headers
from foliot.store.keys import KeyOwner

_BUCKETS: Final = "foliot.buckets"
"""Where a request has what it takes from, if its caller has a rate limit."""


def let_in(request: Request, operation: Operation, services: Services, owner: KeyOwner) -> None:
    """TooMany or Swamped, before anything is read, if the caller is too fast or too much waits already."""
    if operation.is_paced and (buckets := services.pacing.of(owner)):
        request.scope[_BUCKETS] = buckets
        services.pacing.admit(buckets)
    if operation.is_submission:
        services.backlog.check(owner.tenant, owner.backlog)


def charge(request: Request, operation: Operation, services: Services, body: Any) -> None:
    """TooMany if what the call hands in is more than its caller may just now; one was paid at the door."""
    if operation.costs is not None and (buckets := request.scope.get(_BUCKETS)):
        services.pacing.admit(buckets, operation.costs(body), paid=1)


def tell(request: Request, response: Response) -> None:
    """Say what is left of the caller's limit, if it has one."""
    if buckets := request.scope.get(_BUCKETS):
        response.raw_headers.extend(headers(buckets))
