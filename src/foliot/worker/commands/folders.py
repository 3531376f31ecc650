"""A private folder for each command, which is gone when the command is."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "foliot-commands-"


class Folders:
    """Makes folders inside of one that only tells who knows their names."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def make(self, uid: int | None, gid: int | None) -> Path:
        """A new folder that nobody but this account may enter."""
        made = Path(tempfile.mkdtemp(dir=self._place))
        if uid is not None and gid is not None:
            os.chown(made, uid, gid)
        return made


@contextmanager
def open_folders(base: Path | None = None) -> Iterator[Folders]:
    """For as long as the block lasts. What a worker that was killed has left in `base` is removed first."""
    base = base or Path(tempfile.gettempdir())
    for left in base.glob(f"{_PREFIX}*"):
        _remove_if_abandoned(left)
    place, held = _settle_down(base)
    try:
        yield Folders(place)
    finally:
        remove(place)
        os.close(held)


def _settle_down(base: Path) -> tuple[Path, int]:
    """A place of our own, and the descriptor that tells others, as long as it is open, that we live."""
    while True:
        place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        with suppress(FileNotFoundError):
            place.chmod(0o711)
            held = os.open(place, os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX)
            if place.exists():  # a worker that starts beside us may have taken it for abandoned before we held it
                return place, held
            os.close(held)


def _remove_if_abandoned(place: Path) -> None:
    with suppress(OSError):
        held = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(held).st_uid == os.geteuid():
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(place)
        finally:
            os.close(held)


def remove(folder: Path) -> None:
    """However deep it is, and whatever its modes: nobody may be left who could change it meanwhile.

    Folders are moved up to the top before they are emptied, so that no depth is too much, for a stack or for a path.
    """
    with suppress(FileNotFoundError):
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            number = 0
            while subfolders := _unlink_files(top):
                for name in subfolders:
                    number = _flatten(top, name, number)
        finally:
            os.close(top)
        folder.rmdir()


def _flatten(top: int, name: str, number: int) -> int:
    os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        for each in _unlink_files(inner):
            number += 1
            os.chmod(each, 0o700, dir_fd=inner)
            os.rename(each, f"{number}.{os.urandom(8).hex()}", src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return number


def _unlink_files(folder: int) -> list[str]:
    """Remove what is no folder; the names of what is."""
    with os.scandir(folder) as entries:
        is_folder = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    for name in (name for name, is_one in is_folder.items() if not is_one):
        os.unlink(name, dir_fd=folder)
    return [name for name, is_one in is_folder.items() if is_one]
