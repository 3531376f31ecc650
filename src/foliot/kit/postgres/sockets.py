"""Where the server's socket lies: a short path in a folder that only its account may enter."""

import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from foliot.kit.postgres.account import Account
from foliot.kit.postgres.errors import PostgresError

LONGEST: Final = 103 if sys.platform == "darwin" else 107


def prepare_socket_folder(home: Path, account: Account) -> Path:
    """Return the socket folder of `home`, made if need be; refuse one that somebody else has put there."""
    name = f"foliot-{account.uid}-{digest(home)[:12]}"
    for base in dict.fromkeys((tempfile.gettempdir(), "/tmp")):  # noqa: S108 - the folder in it is private and checked
        folder = Path(base) / name
        # To every client a comma in a host separates two of them.
        usable = len(os.fsencode(folder / ".s.PGSQL.5432")) <= LONGEST and "," not in base
        if usable and account.can_enter(Path(base)):
            _own(folder, account)
            return folder
    raise PostgresError(f"{account.name!r} can enter no temporary folder with a short, plain path: set TMPDIR to one.")


def check_socket_folder(folder: Path, account: Account) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.uid or stat.S_IMODE(found.st_mode) & 0o077:
        raise PostgresError(
            f"{folder} is not a private folder of {account.name!r}, somebody else may have made it:"
            " look at it, remove it, and start again."
        )


def dsn(folder: Path, password: str) -> str:
    # The port is spelled out, or a PGPORT in the environment of a client would win.
    query = urlencode({"host": str(folder), "port": "5432"}, safe="/", quote_via=quote)
    return f"postgresql://foliot:{quote(password, safe='')}@/foliot?{query}"


def digest(home: Path) -> str:
    return hashlib.sha256(os.fsencode(home)).hexdigest()


def _own(folder: Path, account: Account) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        # Root's own leavings, from between the two steps below, are as good as new.
        if folder.lstat().st_uid != os.geteuid():
            check_socket_folder(folder, account)
    if account.drop:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    check_socket_folder(folder, account)
