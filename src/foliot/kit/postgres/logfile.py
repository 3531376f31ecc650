"""The server's own log: kept beside the data, bounded at every start, read when a start fails."""

import os
from pathlib import Path
from typing import IO, Final

LARGEST: Final = 10 << 20
SHOWN: Final = 15


def open_log(path: Path) -> IO[bytes]:
    """Open the log at its end; what has grown too large becomes `<name>.1`."""
    if path.exists() and path.stat().st_size > LARGEST:
        path.replace(path.with_name(f"{path.name}.1"))
    # Statements, with what people put in them, may appear in it: private.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    file = os.fdopen(descriptor, "ab")
    file.seek(0, os.SEEK_END)
    return file


def last_lines(path: Path, began: int) -> list[str]:
    """Return the last lines written since the log was `began` bytes long."""
    with path.open("rb") as file:
        file.seek(began)
        return file.read().decode(errors="replace").splitlines()[-SHOWN:]
