"""What applications import: a client to hand work in, a worker to serve it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from foliot.domain.errors import FenceLost
    from foliot.sdk.aio import AsyncFoliot
    from foliot.sdk.client import Foliot
    from foliot.sdk.context import Context, Permanent, Snooze
    from foliot.sdk.protocol import ApiError, NotConfigured
    from foliot.sdk.records import AsyncOperation, AsyncRun, Items, Job, Operation, Run
    from foliot.sdk.worker import Worker

__all__ = [
    "ApiError",
    "AsyncFoliot",
    "AsyncOperation",
    "AsyncRun",
    "Context",
    "FenceLost",
    "Foliot",
    "Items",
    "Job",
    "NotConfigured",
    "Operation",
    "Permanent",
    "Run",
    "Snooze",
    "Worker",
]

_PLACES: Final = {
    "domain.errors": ("FenceLost",),
    "sdk.aio": ("AsyncFoliot",),
    "sdk.client": ("Foliot",),
    "sdk.context": ("Context", "Permanent", "Snooze"),
    "sdk.protocol": ("ApiError", "NotConfigured"),
    "sdk.records": ("AsyncOperation", "AsyncRun", "Items", "Job", "Operation", "Run"),
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
