"""Foliot: a distributed, multi-tenant job scheduler on PostgreSQL."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "ApiError",
    "AsyncFoliot",
    "AsyncRun",
    "Conflict",
    "Context",
    "FenceLost",
    "Foliot",
    "FoliotError",
    "Forbidden",
    "InvalidField",
    "InvalidRequest",
    "NotConfigured",
    "NotFound",
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
    "__version__",
]

if TYPE_CHECKING:
    from foliot.sdk import (
        ApiError,
        AsyncFoliot,
        AsyncRun,
        Conflict,
        Context,
        FenceLost,
        Foliot,
        FoliotError,
        Forbidden,
        InvalidField,
        InvalidRequest,
        NotConfigured,
        NotFound,
        Permanent,
        QuotaExceeded,
        Run,
        RunFailed,
        Snooze,
        TooManyRequests,
        Unauthorised,
        Unavailable,
        Unreachable,
        Worker,
    )


def __getattr__(name: str) -> Any:
    """Load the SDK on first use, so that `import foliot` stays cheap for the CLI and the processes."""
    if name in __all__:
        from foliot import sdk  # noqa: PLC0415 - the point of this function

        return getattr(sdk, name)
    raise AttributeError(f"module 'foliot' has no attribute {name!r}")
