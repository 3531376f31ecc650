"""Which walls can be put up around a command here, and as whom it runs."""

import asyncio
import os
import pwd
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from foliot.domain.commands import Limits
from foliot.domain.errors import FoliotError
from foliot.worker.child.child import CannotStart
from foliot.worker.child.confine import PARTS
from foliot.worker.child.nursery import Command, Nursery
from foliot.worker.commands.folders import Folders, remove
from foliot.worker.commands.rules import Walls, rules_of

FIRST_ID: Final = 65_536
IDS: Final = 34_464
"""User ids for tenants without an account of their own: above those of accounts, below those handed to containers."""
_NEEDS: Final = {"user": set(PARTS), "mount": {"proc", "read-only"}, "pid": {"proc"}}
"""What is lost together with a part."""
_PATIENCE: Final = 5.0


class Account(NamedTuple):
    """Whom a command runs as; none of both means as ourselves."""

    uid: int | None = None
    gid: int | None = None
    name: str | None = None


OURSELVES: Final = Account()


class Isolation(NamedTuple):
    """What was found out by trying."""

    other_user: bool
    """Whether commands can run as somebody else."""
    parts: frozenset[str]
    refused: dict[str, str]
    """What the kernel does not let us have, and what it said."""

    @property
    def summary(self) -> str:
        walls = ", ".join(part for part in PARTS if part in self.parts) or "none"
        return f"namespaces: {walls}" + (f"; refused: {', '.join(sorted(self.refused))}" if self.refused else "")


def account_of(name: str | None, tenant: int) -> Account:
    """The account of that name, or user and group ids that no other tenant has and no file belongs to."""
    if name is None:
        if tenant >= IDS:  # two tenants under one id could read and stop each other's commands
            hint = "name an `account` for it in the file of commands"
            raise FoliotError(f"there are user ids for {IDS:,} tenants, and this one comes later", hint)
        return Account(FIRST_ID + tenant, FIRST_ID + tenant)
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        hint = f"make it (useradd --system {name}), or leave `account` out: each tenant then has user ids of its own"
        raise FoliotError(f"there is no account {name!r} for commands to run as", hint) from None
    if entry.pw_uid in {0, os.geteuid()}:
        hint = "name an account that may do little and owns nothing of Foliot's"
        raise FoliotError(f"commands cannot run as {name!r}: it is root, or Foliot's own account", hint)
    return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)


async def probe(nursery: Nursery, folders: Folders, wanted: Sequence[str] = PARTS) -> Isolation:
    """Try a command that does nothing behind all walls, then without those that the kernel refuses."""
    is_root = os.geteuid() == 0
    account = account_of(None, 0) if is_root else OURSELVES
    parts, refused = set(wanted) - ({"user"} if is_root else set()), dict[str, str]()
    if sys.platform != "linux":
        return Isolation(other_user=False, parts=frozenset(), refused={"linux": "walls are made of what only it has"})
    while True:
        try:
            ended = await _try(nursery, folders, account, parts)
        except CannotStart as error:
            if error.part in parts:
                lost = {error.part, *_NEEDS.get(error.part, ())} & parts
                refused |= dict.fromkeys(lost, os.strerror(error.errno))
                parts -= lost
            elif account.uid is not None:
                refused["account"] = os.strerror(error.errno)
                account = OURSELVES
            else:
                raise
        else:
            return Isolation(account.uid is not None and ended, frozenset(parts), refused)


async def _try(nursery: Nursery, folders: Folders, account: Account, parts: set[str]) -> bool:
    """Whether it could be ended by us: to start somebody whom we may not kill would be the worst of all."""
    try:
        folder = folders.make(account.uid, account.gid)
    except OSError as error:  # root of a user namespace, in which nobody else exists
        raise CannotStart("no folder can be given away", error.errno or 1, "account") from error
    reading, writing = os.pipe()
    try:
        rules = rules_of(account.uid, account.gid, Limits(), Walls(frozenset(parts)), str(folder))
        child = await nursery.start(
            Command(["/bin/sh", "-c", "read nothing"], {0: reading, 1: writing, 2: writing}, rules=rules)
        )
        child.stop(timedelta(0))
        try:
            await asyncio.wait_for(child.ended(), _PATIENCE)
        except TimeoutError:
            return False
        return True
    finally:
        os.close(reading)
        os.close(writing)
        remove(folder)
