"""Server programs that an account cannot run where they are, copied to where it can."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from foliot.kit.postgres.account import Account
from foliot.kit.postgres.binaries import WHEEL, Binaries
from foliot.kit.postgres.errors import PostgresError


def reachable(binaries: Binaries, account: Account, folder: Path, log: Callable[[str], None]) -> Binaries:
    """Return `binaries`, or their copy in `folder` if `account` cannot run the originals."""
    if account.can_run(binaries.bin / "initdb"):
        return binaries
    tree = binaries.bin.parent
    if tree.parent.name != WHEEL:
        raise PostgresError(
            f"{account.name!r} cannot run {binaries.bin}/initdb: install it where it can, or use the wheel."
        )
    target = folder / _name(binaries)
    if not target.exists():
        log(f"{account.name!r} cannot run the programs in {binaries.bin}: copying them to {target}")
        _copy(tree, target)
    copied = Binaries(target / WHEEL / tree.name / "bin", binaries.version)
    if not account.can_run(copied.bin / "initdb"):
        raise PostgresError(
            f"{account.name!r} cannot run programs in {folder}: is it mounted noexec? Remount it, or move."
        )
    return copied


def forget_others(binaries: Binaries, folder: Path) -> None:
    """Remove copies other than the one in use; call it only when no server of an older copy can be running."""
    for old in folder.glob("binaries-*"):
        if not binaries.bin.is_relative_to(old):
            shutil.rmtree(old, ignore_errors=True)


def _name(binaries: Binaries) -> str:
    # A rebuilt wheel of the same version is another copy.
    origin = (binaries.bin / "postgres").stat()
    mark = hashlib.sha256(f"{binaries.bin} {origin.st_size} {origin.st_mtime_ns}".encode()).hexdigest()[:8]
    return f"binaries-{binaries.version[0]}.{binaries.version[1]}-{mark}"


def _copy(tree: Path, target: Path) -> None:
    # Made outside and moved in when whole: the folder itself belongs to the account, which could divert our writes.
    prefix = f".{target.parent.name}-binaries-"
    for half in target.parent.parent.glob(f"{prefix}*"):
        shutil.rmtree(half)
    stage = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent.parent))
    try:
        unneeded = shutil.ignore_patterns("include", "*.a", "__pycache__")
        # The programs look for their libraries relative to themselves: the layout of the wheel must stay.
        for source in (tree, tree.parent.with_name(f"{WHEEL}.libs")):
            if source.exists():
                place = stage / source.relative_to(tree.parent.parent)
                shutil.copytree(source, place, ignore=unneeded, copy_function=_copy_file, symlinks=True)
        for parent, _, _ in os.walk(stage):
            Path(parent).chmod(0o755)
        stage.rename(target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _copy_file(source: str, target: str) -> None:
    # Readable for all, even if the original was installed under a strict umask.
    shutil.copyfile(source, target)
    Path(target).chmod(0o755 if os.access(source, os.X_OK) else 0o644)
