"""The data folder: made whole or not at all, never opened by another major version."""

import json
import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from foliot.kit.postgres.account import Account
from foliot.kit.postgres.binaries import Binaries
from foliot.kit.postgres.errors import PostgresError
from foliot.kit.postgres.place import sync_folder


def check_version(data: Path, binaries: Binaries) -> None:
    """Raise, before anything is touched, unless `data` is absent or was made by this major version."""
    if not data.exists():
        return
    try:
        made_by = (data / "PG_VERSION").read_text().strip()
    except OSError as error:
        raise PostgresError(f"{data} is no readable cluster ({error.strerror}): restore it or move it away.") from error
    if made_by != str(binaries.major):
        raise PostgresError(
            f"The data in {data} was made by PostgreSQL {made_by[:9]!r}, but the programs are {binaries}."
            " Nothing was touched. Configure the bin folder of that version, or move the data to"
            f" {binaries.major}: pg_dump with the old programs and restore into a new home, or pg_upgrade."
        )


def read_password(home: Path) -> str:
    path = home / "postgres.json"
    try:
        return str(json.loads(path.read_text())["password"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PostgresError(
            f"The database's password cannot be read from {path} ({error!r}): restore that file, or set a new one with"
            ' postgres --single (ALTER ROLE foliot PASSWORD \'...\') and write it there as {"password": "..."}.'
        ) from error


def ensure_cluster(home: Path, folder: Path, binaries: Binaries, account: Account) -> Path:
    """Return the data folder in `folder`, initialised if there is none yet."""
    data = folder / "data"
    for half in folder.glob("data.new-*"):
        shutil.rmtree(half, ignore_errors=True)
    if not data.exists():
        # On disk before the cluster that is made with it: a cluster without its password would be of no use.
        _ensure_password(home)
        stage = folder / f"data.new-{secrets.token_hex(4)}"
        try:
            _initialise(stage, binaries, account, read_password(home))
            stage.rename(data)
            sync_folder(folder)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    return data


def _ensure_password(home: Path) -> None:
    path, stage = home / "postgres.json", home / "postgres.json.new"
    if path.exists():
        return
    stage.unlink(missing_ok=True)
    descriptor = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"password": secrets.token_urlsafe(32)}, file)
        file.flush()
        os.fsync(descriptor)
    stage.rename(path)
    sync_folder(home)


def _initialise(stage: Path, binaries: Binaries, account: Account, password: str) -> None:
    # The password goes through a pipe: no file to be left behind by a kill. Opening /dev/fd/N asks who owns the pipe;
    # where that cannot be changed (macOS) it is not asked either.
    reader, writer = os.pipe()
    try:
        with suppress(OSError):
            os.fchown(reader, account.uid, account.gid)
        os.write(writer, f"{password}\n".encode())
        os.close(writer)
        command: list[str | Path] = [
            binaries.bin / "initdb",
            "-D",
            stage,
            f"--pwfile=/dev/fd/{reader}",
            *_options(binaries),
        ]
        done = account.run(command, keep=[reader], timeout=300)
    finally:
        os.close(reader)
    if done.returncode:
        raise PostgresError(
            f"initdb could not make the database in {stage.parent}:\n{done.stdout[-1000:]}{done.stderr[-2000:]}\n"
            "Correct what it names and start again; nothing half-made was kept."
        )


def _options(binaries: Binaries) -> Sequence[str]:
    # The same order of strings on every system, and none that changes with a C library.
    builtin = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    locale = builtin if binaries.major >= 17 else ("--locale=C.UTF-8",)
    return ("-U", "foliot", "-A", "scram-sha-256", "--encoding=UTF8", "--data-checksums", "--no-instructions", *locale)
