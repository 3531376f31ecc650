"""Where a handler turns to while it runs."""

from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from foliot.domain.report import Progress
from foliot.kit.clock import wall

T = TypeVar("T")


class Desk:
    """Answers for attempts that no worker looks after, such as those of an application's own tests.

    Nobody asks them to stop, and what they tell is not kept. A worker's own desk does better. Every method may be
    called from any thread; `attempt` is whatever the worker knows the attempt by.
    """

    stopping: Mapping[int, Any] = MappingProxyType({})
    """Attempts that are to end; for all others nothing needs to be asked."""

    @property
    def is_draining(self) -> bool:
        """Whether the worker is about to leave."""
        return False

    @property
    def leaves_by(self) -> datetime | None:
        """When it stops what still runs; none if it leaves when nothing does."""
        return None

    def now(self) -> datetime:
        """What the clock shows by which attempts are stopped."""
        return wall()

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002
        """Have `watcher` called when the worker begins to drain, until what this returns is called."""
        return lambda: None

    def stop(self) -> None:
        """A process of its own hears its signal."""

    def why_stopped(self, attempt: Any) -> str | None:  # noqa: ARG002
        """Why the attempt is to end; none if it may go on."""
        return None

    def is_cancelled(self, attempt: Any) -> bool:  # noqa: ARG002
        """Whether somebody asked for its end."""
        return False

    def has_noticed(self, attempt: Any) -> bool:  # noqa: ARG002
        """Whether its handler has asked, and knows that it is to end."""
        return False

    def hold(self, attempt: Any) -> None:
        """Have its time begin with the next `extend`: what is to run it is being made."""

    def extend(self, attempt: Any) -> datetime | None:  # noqa: ARG002
        """Begin its time anew; until when it has now, or none if it has had all that there is."""
        return None

    def note(self, attempt: Any, progress: Progress) -> None:
        """Have people see how far it is, soon."""

    def save(self, attempt: Any, state: bytes) -> "Future[None]":  # noqa: ARG002
        """Keep this for the next attempt. Done when it is on disk; FenceLost if the attempt counts no more."""
        return resolved(None)

    def last(self, attempt: Any) -> "Future[bytes | None]":  # noqa: ARG002
        """What was saved last, by this attempt or one before."""
        return resolved(None)

    def do(self, deed: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begin this on the worker's loop: a handler in a thread has none."""
        deed.close()
        raise RuntimeError("no worker looks after this attempt")


NOBODY = Desk()


def promised() -> "Future[Any]":
    """A future that nobody can cancel: what was asked for happens, whether or not somebody still waits."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def resolved(value: T) -> "Future[T]":
    future: Future[T] = promised()
    future.set_result(value)
    return future
