"""What applications import: a client to hand work in, a worker to serve it."""

from foliot.sdk.client import AsyncFoliot, Foliot, Job, Run
from foliot.sdk.context import Context, Permanent
from foliot.sdk.protocol import ApiError, NotConfigured
from foliot.sdk.worker import Worker

__all__ = ["ApiError", "AsyncFoliot", "Context", "Foliot", "Job", "NotConfigured", "Permanent", "Run", "Worker"]
