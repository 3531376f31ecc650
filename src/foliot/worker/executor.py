"""What runs a handler: one call that ends in success, says what went wrong, or asks to be called again later."""

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from foliot.domain.outcome import Answer
from foliot.domain.spec import Spec
from foliot.store.dispatch import Claimed
from foliot.store.specs import StoredSpec


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """One attempt: the run, how to run it, and since when."""

    run: Claimed
    spec: Spec
    name: str
    started_at: datetime


Executor = Callable[[Assignment], Awaitable[Answer]]
"""Runs one attempt. None means success; an exception means that the executor itself broke, and is retried."""

Executors = Callable[[StoredSpec], Executor | None]
"""Finds the executor of a spec; none if this worker has no such handler."""
