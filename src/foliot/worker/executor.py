"""What runs a handler: one call that ends in success, says what went wrong, or asks to be called again later."""

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from foliot.domain.outcome import Answer
from foliot.domain.spec import Handler, Spec
from foliot.store.dispatch import Claimed
from foliot.store.specs import StoredSpec


class Given(msgspec.Struct, frozen=True):
    """What a run refers to as secrets, in their place."""

    payload: bytes
    target: bytes | None
    handler: Handler
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        return "Given()"


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """One attempt: the run, how to run it, and since when."""

    run: Claimed
    spec: Spec
    name: str
    started_at: datetime
    given: Given | None = None
    """Of a run that refers to secrets: what its handler gets instead."""

    @property
    def payload(self) -> bytes:
        return self.run.payload if self.given is None else self.given.payload

    @property
    def target(self) -> bytes | None:
        return self.run.target if self.given is None else self.given.target

    @property
    def handler(self) -> Handler:
        return self.spec.handler if self.given is None else self.given.handler


Executor = Callable[[Assignment], Awaitable[Answer]]
"""Runs one attempt. None means success; an exception means that the executor itself broke, and is retried."""

Executors = Callable[[StoredSpec], Executor | None]
"""Finds the executor of a spec; none if this worker has no such handler."""
