"""What applications import: a client to hand work in, a worker to serve it."""

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
