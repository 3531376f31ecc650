"""One launcher per home: a lock that lives exactly as long as the process that holds it."""

import fcntl
import os
from pathlib import Path

from foliot.kit.postgres.errors import PostgresError


class HomeLock:
    """An flock on a file that is never removed; closed on exec, so that a server left behind does not keep it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the home, or raise. Says whether its last holder was killed: who lets go leaves the file empty."""
        if self._descriptor is not None:
            return False
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise PostgresError(
                f"another `foliot up` runs here (pid {holder}): stop it first, or give this one a FOLIOT_HOME of"
                f" its own (now {self._path.parent})."
            ) from None
        was_abandoned = os.fstat(descriptor).st_size > 0
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor
        return was_abandoned

    def release(self) -> None:
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None
