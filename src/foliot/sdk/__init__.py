"""What applications import: a client to hand work in, a worker to serve it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from foliot.domain.errors import FenceLost, FoliotError, InvalidField
    from foliot.sdk.aio import AsyncFoliot
    from foliot.sdk.aio.lasting import AsyncOperation, AsyncRun
    from foliot.sdk.aio.pages import AsyncItems
    from foliot.sdk.client import Foliot
    from foliot.sdk.client.lasting import Operation, Run
    from foliot.sdk.client.pages import Items
    from foliot.sdk.context import Context, Permanent, Snooze
    from foliot.sdk.errors import (
        ApiError,
        Conflict,
        Forbidden,
        InvalidRequest,
        NotConfigured,
        NotFound,
        QuotaExceeded,
        RunFailed,
        TooManyRequests,
        Unauthorised,
        Unavailable,
        Unreachable,
    )
    from foliot.sdk.records import Job
    from foliot.sdk.worker import Worker

__all__ = [
    "ApiError",
    "AsyncFoliot",
    "AsyncItems",
    "AsyncOperation",
    "AsyncRun",
    "Conflict",
    "Context",
    "FenceLost",
    "Foliot",
    "FoliotError",
    "Forbidden",
    "InvalidField",
    "InvalidRequest",
    "Items",
    "Job",
    "NotConfigured",
    "NotFound",
    "Operation",
    "Permanent",
    "QuotaExceeded",
    "Run",
    "RunFailed",
    "Snooze",
    "TooManyRequests",
    "Unauthorised",
    "Unavailable",
    "Unreachable",
    "Worker",
]

_PLACES: Final = {
    "domain.errors": (
        "FenceLost",
        "FoliotError",
        "InvalidField",
    ),
    "sdk.aio": ("AsyncFoliot",),
    "sdk.aio.lasting": (
        "AsyncOperation",
        "AsyncRun",
    ),
    "sdk.aio.pages": ("AsyncItems",),
    "sdk.client": ("Foliot",),
    "sdk.client.lasting": (
        "Operation",
        "Run",
    ),
    "sdk.client.pages": ("Items",),
    "sdk.context": (
        "Context",
        "Permanent",
        "Snooze",
    ),
    "sdk.errors": (
        "ApiError",
        "Conflict",
        "Forbidden",
        "InvalidRequest",
        "NotConfigured",
        "NotFound",
        "QuotaExceeded",
        "RunFailed",
        "TooManyRequests",
        "Unauthorised",
        "Unavailable",
        "Unreachable",
    ),
    "sdk.records": ("Job",),
    "sdk.worker": ("Worker",),
}
_PLACE_OF: Final = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load each part on first use: an application that only serves functions need not wait for an HTTP client.

    It is imported once for each attempt that runs in a process of its own: without this, in 0.4 s instead of 0.2.
    """
    if name in _PLACE_OF:
        return getattr(import_module(f"foliot.{_PLACE_OF[name]}"), name)
    raise AttributeError(f"module 'foliot.sdk' has no attribute {name!r}")
