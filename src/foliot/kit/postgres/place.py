"""Where the cluster lives: in the home, or, when its account cannot get there, in a folder of the system."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from foliot.kit.postgres.account import Account, choose_account
from foliot.kit.postgres.errors import PostgresError
from foliot.kit.postgres.sockets import digest

SYSTEM = Path("/var/lib/foliot")


def settle(home: Path, name: str | None, log: Callable[[str], None]) -> tuple[Path, Account]:
    """Return the folder for cluster and copied programs, private to the account that is returned with it."""
    # What exists is taken as it is, with its owner; no permission of any parent folder is changed.
    folder = find_folder(home)
    account = choose_account(name, _owner(folder) if folder else None)
    if folder is None:
        folder = _make(home, account, log)
    elif account.drop and folder.stat().st_uid == 0:
        _check_empty(folder, account)  # a fresh mount, or we were killed between making and giving
        _give(folder, account)
    if not account.can_enter(folder):
        raise PostgresError(
            f"{account.name!r} cannot enter {folder}: let it pass through the folders above (chmod o+x),"
            " or choose a FOLIOT_HOME that it can reach."
        )
    return folder, account


def find_folder(home: Path) -> Path | None:
    """Return the existing folder, links followed; a link into nowhere is an unmounted disk, not a fresh start."""
    entry = home / "postgres"
    if entry.is_symlink() and not entry.exists():
        raise PostgresError(
            f"{entry} points to {entry.readlink()}, which is gone: bring it back (mount, restore),"
            " or remove the link to begin with an empty database."
        )
    return entry.resolve() if entry.exists() else None


def sync_folder(folder: Path) -> None:
    """Make names in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _owner(folder: Path) -> int:
    try:
        return (folder / "data").stat().st_uid
    except (FileNotFoundError, PermissionError):
        return folder.stat().st_uid


def _check_empty(folder: Path, account: Account) -> None:
    if {entry.name for entry in folder.iterdir()} - {"lost+found"}:
        raise PostgresError(
            f"{folder} belongs to root and is not empty: give it to {account.name!r} (chown -R) if it is the database,"
            " else move its contents away."
        )


def _make(home: Path, account: Account, log: Callable[[str], None]) -> Path:
    if not account.drop or account.can_enter(home):
        folder = home / "postgres"
        folder.mkdir(mode=0o700)
        _give(folder, account)
    else:
        folder = _make_in_system(home, account)
        (home / "postgres").symlink_to(folder)
        log(f"{account.name!r} cannot enter {home}: the database lives in {folder}, {home}/postgres links to it")
    sync_folder(home)
    return folder


def _make_in_system(home: Path, account: Account) -> Path:
    if not SYSTEM.exists():
        SYSTEM.mkdir()
        SYSTEM.chmod(0o711)  # whatever the umask
    found = SYSTEM.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        raise PostgresError(f"{SYSTEM} must be a folder of root that nobody else can write to (chmod 711).")
    folder = SYSTEM / digest(home)[:16]
    if (folder / "data").exists():
        raise PostgresError(
            f"{folder} holds a database of an earlier {home}. To go on with it: put {home}/postgres.json back and"
            f" ln -s {folder} {home}/postgres. To begin anew: remove {folder}."
        )
    folder.mkdir(mode=0o700, exist_ok=True)
    _give(folder, account)
    return folder


def _give(folder: Path, account: Account) -> None:
    folder.chmod(0o700)
    if account.drop:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
