"""Starts children, each under a guard, and renews the lease that all of them live by."""

import asyncio
import marshal
import mmap
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog

from foliot.kit.clock import Steady, steady
from foliot.kit.tasks import background
from foliot.worker.child.child import CannotStart, Child, Forsaken
from foliot.worker.child.launch import LENGTH

log = structlog.get_logger("worker")

PULSE: Final = timedelta(seconds=1)
"""How often the supervisor shows its guards that it is there."""
SILENCE: Final = timedelta(seconds=4)
"""How long guards wait for it, if the lease has ended before: cut off from the database, children may finish."""
BOUND, FREE = 0, 1
"""Places on the page: the end of the lease, and how long the supervisor is known to be there, if that is later."""

_LAST_WORDS: Final = 5.0
"""Seconds that killed children get to be gone: longer only if the kernel holds them."""
_STUCK: Final = 5.0
"""Seconds that the guardian gets to take an order."""
_LOADING: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What Python itself may need to start."""
_START: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from foliot.worker.child.guardian import main; main()"
_ROOT: Final = str(Path(__file__).parents[3])


class Command(NamedTuple):
    """What a child executes, without a shell. `descriptors` are ours, by the place at which the child finds them."""

    argv: Sequence[str]
    descriptors: Mapping[int, int]
    environment: Mapping[str, str] = {}
    """All of it: nothing of our own is handed down unasked."""
    folder: str = ""
    program: str = ""
    """The file to execute, if `argv` calls it by another name."""
    last: Sequence[str] = ()
    """Executed when the child did not end by itself: to end what it has others do."""
    rules: Mapping[str, Any] | None = None
    """What it may not do (child/confine.py); none for a child that is to be trusted like ourselves."""
    bound: bool = False
    """Killed at the end of the lease even if its supervisor is there, and only the database is not."""


@asynccontextmanager
async def open_nursery(
    clock: Steady = steady, pulse: timedelta = PULSE, silence: timedelta = SILENCE, *, secretive: bool = False
) -> "AsyncIterator[Nursery]":
    """A nursery for as long as the block lasts; no child, nor anybody that it started, outlives it.

    With `secretive`, processes of our own user cannot look into those that stand between us and our children.
    """
    page = _page()
    try:
        os.ftruncate(page, mmap.PAGESIZE)
        nursery = Nursery(page, clock, silence, secretive=secretive)
        async with background(nursery.beat(pulse)):
            try:
                yield nursery
            finally:
                await nursery.close()
    finally:
        os.close(page)


class Nursery:
    """`lease_ends` is by the steady clock, like everything here."""

    def __init__(self, page: int, clock: Steady, silence: timedelta, *, secretive: bool = False) -> None:
        self._page = page
        self._leases = memoryview(mmap.mmap(page, mmap.PAGESIZE)).cast("d")
        self._clock = clock
        self._secretive = secretive
        self._silence = silence.total_seconds()
        self._lease_ends = float("-inf")
        self._guardian: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._children: set[Child] = set()
        self._turn = asyncio.Lock()
        self.hold(self._lease_ends)

    def hold(self, lease_ends: float) -> None:
        """The lease was renewed: children may live until then."""
        self._lease_ends = lease_ends
        self._leases[BOUND] = lease_ends
        self._leases[FREE] = max(lease_ends, self._clock() + self._silence)

    async def beat(self, pulse: timedelta) -> None:
        """Show that we are there, until cancelled."""
        while True:
            self.hold(self._lease_ends)
            await asyncio.sleep(pulse.total_seconds())

    async def close(self) -> None:
        """Kill every child, and see them gone."""
        for child in self._children:
            child.stop(timedelta(0))
        if ends := [asyncio.ensure_future(child.ended()) for child in self._children]:
            await asyncio.wait(ends, timeout=_LAST_WORDS)
        for child in list(self._children):
            child.abandon()
        self._dismiss()

    async def start(self, command: Command) -> Child:
        """Return when it runs; CannotStart if it cannot be executed."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                await self._ask(command, theirs)
            asked = self._guardian
            loop = asyncio.get_running_loop()
            _, child = await loop.create_unix_connection(lambda: Child(self._children), sock=ours)
        except BaseException:
            ours.close()
            raise
        try:
            await child.started
        except BaseException as error:
            child.abandon()
            if isinstance(error, Forsaken) and self._guardian is asked:
                self._dismiss()  # it may be dead: whoever comes next finds another one
            raise
        return child

    async def _ask(self, command: Command, control: socket.socket) -> None:
        order = marshal.dumps(
            {
                "program": command.program or command.argv[0],
                "argv": list(command.argv),
                "environment": dict(command.environment),
                "folder": command.folder,
                "places": list(command.descriptors),
                "last": list(command.last),
                "lease": BOUND if command.bound else FREE,
                "rules": None if command.rules is None else dict(command.rules),
            }
        )
        message = LENGTH.pack(len(order)) + order
        descriptors = [control.fileno(), *command.descriptors.values()]
        async with self._turn:
            for has_failed in (False, True):
                try:
                    async with asyncio.timeout(_STUCK):
                        await _hand_over(self._requests(), message, descriptors)
                except OSError as error:  # killed, or stuck: its guards go on without it
                    log.warning("the guardian is gone; starting another one", error=str(error))
                    self._dismiss()
                    if has_failed:
                        raise CannotStart("no guardian could be started to look after it") from None
                else:
                    return

    def _requests(self) -> socket.socket:
        if self._guardian is None:
            ours, theirs = socket.socketpair()
            with theirs:
                descriptors = [theirs.fileno(), self._page]
                process = subprocess.Popen(  # noqa: S603 - our own
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        "-c",
                        _START,
                        _ROOT,
                        *map(str, descriptors),
                        str(int(self._secretive)),
                    ],
                    pass_fds=descriptors,
                    stdin=subprocess.DEVNULL,
                    # A command may be of the same user as its guard: nothing that it could find there is a secret.
                    env={name: os.environ[name] for name in _LOADING if name in os.environ},
                    start_new_session=True,  # Ctrl-C, and a stop from the terminal, are for the supervisor
                )
            ours.setblocking(False)
            self._guardian = process, ours
        return self._guardian[1]

    def _dismiss(self) -> None:
        """End the guardian, however it fares. Its guards do not need it."""
        if self._guardian is not None:
            process, requests = self._guardian
            self._guardian = None
            requests.close()
            process.kill()
            process.wait()


async def _hand_over(requests: socket.socket, message: bytes, descriptors: list[int]) -> None:
    """Descriptors go with the first byte; the rest follows as the guardian, which may have much to do, takes it."""
    loop = asyncio.get_running_loop()
    writable = asyncio.Event()
    loop.add_writer(requests, writable.set)
    try:
        await writable.wait()
    finally:
        loop.remove_writer(requests)
    sent = socket.send_fds(requests, [message], descriptors)
    await loop.sock_sendall(requests, message[sent:])


def _page() -> int:
    if sys.platform == "linux":
        return os.memfd_create("foliot-leases")
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)  # noqa: PTH108 - as it was given
    return descriptor
