"""As whom the server runs: as ourselves, or, when we are root, as an account that may do little."""

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from foliot.kit.postgres.errors import PostgresError

PREFERRED: Final = ("foliot", "postgres", "nobody")
INHERITED: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Account:
    """Whoever runs the server's programs; `drop` says that we are root and must become it first."""

    name: str
    uid: int
    gid: int
    drop: bool

    def spawn(
        self,
        command: Sequence[str | Path],
        *,
        folder: Path,
        output: IO[bytes],
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program that outlives us, in its own session: Ctrl-C in our terminal is ours to pass on."""
        return subprocess.Popen(  # noqa: S603 - the command is the launcher's own
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environment(variables),
            start_new_session=True,
            user=self.uid if self.drop else None,
            group=self.gid if self.drop else None,
            extra_groups=[] if self.drop else None,
        )

    def run(
        self,
        command: Sequence[str | Path],
        *,
        variables: Mapping[str, str] | None = None,
        keep: Sequence[int] = (),
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end. What lies in folders of the account is never run as root."""
        return subprocess.run(  # noqa: S603 - as above
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd="/",
            env=environment(variables),
            pass_fds=keep,
            start_new_session=True,
            timeout=timeout,
            check=False,
            user=self.uid if self.drop else None,
            group=self.gid if self.drop else None,
            extra_groups=[] if self.drop else None,
        )

    def can_enter(self, folder: Path) -> bool:
        """Try it: mode bits alone do not tell, with access lists, mounts and namespaces in between."""
        try:
            return self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", folder]).returncode == 0
        except PermissionError as error:  # everyone may run a shell, so it is the change of user that was denied
            raise PostgresError(
                f"We are root but may not become {self.name!r} ({error.strerror}): start Foliot as a plain user,"
                " or grant CAP_SETUID and CAP_SETGID."
            ) from error

    def can_run(self, program: Path) -> bool:
        try:
            return self.run([program, "--version"]).returncode == 0
        except PermissionError:
            return False


def choose_account(name: str | None, owner: int | None) -> Account:
    """Pick who runs the server: the one asked for, else the `owner` of what exists, else the first preferred."""
    # Nobody is created. PostgreSQL refuses root, and initdb refuses an id that has no name.
    ourselves = os.geteuid()
    if ourselves != 0:
        return _check(_by_id(ourselves), name, owner, drop=False)
    if name is not None:
        return _check(_by_name(name), name, owner, drop=True)
    if owner:
        return _check(_by_id(owner), None, owner, drop=True)
    for preferred in PREFERRED:
        try:
            return _check(pwd.getpwnam(preferred), None, None, drop=True)
        except KeyError:
            continue
    raise PostgresError(
        f"PostgreSQL does not run as root and none of the accounts {', '.join(PREFERRED)} exists:"
        " make one (useradd --system foliot) or start Foliot as a plain user."
    )


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what the server's programs see of our environment."""
    # PG* variables would redirect them, secrets are none of their business, and `C` is the one locale every system has.
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | {"LC_ALL": "C"} | dict(variables or {})


def _check(entry: pwd.struct_passwd, name: str | None, owner: int | None, *, drop: bool) -> Account:
    if entry.pw_uid == 0:
        raise PostgresError("PostgreSQL does not run as root: name an unprivileged account.")
    if name not in {None, entry.pw_name}:
        raise PostgresError(f"Only root can run the database as {name!r}: start Foliot as root or as {name!r} itself.")
    if owner and owner != entry.pw_uid:
        raise PostgresError(
            f"The database folder belongs to user id {owner}, not to {entry.pw_name!r}:"
            " start Foliot as its owner or as root, or give the folder away (chown -R) while nothing runs."
        )
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, drop)


def _by_name(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise PostgresError(
            f"There is no account {name!r}: make it (useradd --system {name}) or name another."
        ) from None


def _by_id(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise PostgresError(
            f"User id {uid} has no name, and initdb wants one: add it to /etc/passwd, or start Foliot as another user."
        ) from None
