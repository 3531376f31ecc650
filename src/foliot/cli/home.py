"""The home of `foliot up`: held by one at a time, and the place where clients on this machine find it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from foliot.cli.compose import CannotStart
from foliot.cli.operate import deed_here
from foliot.domain.errors import Conflict
from foliot.kit.postgres import PostgresError
from foliot.kit.postgres.lock import HomeLock
from foliot.kit.settings import Access, Settings, client_file
from foliot.services.tenants import Tenants
from foliot.store.audit import DOING
from foliot.wire.keys import LONGEST_NAME

TENANT: Final = "dev"


@contextmanager
def held(home: Path) -> Iterator[bool]:
    """Be the only `foliot up` in this home. Gives whether the one before was killed, and its children may linger."""
    lock = HomeLock(home / "up.lock")
    try:
        home.mkdir(parents=True, exist_ok=True)
        was_abandoned = lock.acquire()
    except PostgresError as error:
        raise CannotStart(str(error)) from None
    except OSError as error:
        hint = "choose a folder that you may write to with FOLIOT_HOME"
        raise CannotStart(f"{home} cannot be used: {error.strerror}", hint) from None
    try:
        yield was_abandoned
    finally:
        lock.release()


def signing(settings: Settings) -> Settings:
    """With what the `foliot up` of this home signs its audit trail, unless something else is set."""
    key = settings.home / "audit.key"
    if settings.database_url is not None or settings.audit_key_file is not None or not key.exists():
        return settings
    return settings._replace(objects=settings.objects or str(settings.home / "objects"), audit_key_file=key)


async def introduce(home: Path, url: str, tenants: Tenants) -> None:
    """Write the address and a valid key of the development tenant where clients look; the key stays while it can."""
    file = client_file(home)
    doing = DOING.set(deed_here("up"))
    try:
        key = _known_key(file)
        if key is None or not await tenants.whose(key):
            key = await _new_key(home, tenants)
        await tenants.make_operator(key)  # the operator's own machine, and keys of before were not
    finally:
        DOING.reset(doing)
    draft = file.with_suffix(".new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_bytes(msgspec.json.encode(Access(url, key)))
    draft.replace(file)


async def _new_key(home: Path, tenants: Tenants) -> str:
    try:
        return await tenants.create(TENANT)
    except Conflict:  # it exists from an earlier start, or from another home that uses the same database
        return await tenants.issue_key(TENANT, f"foliot up at {socket.gethostname()}:{home}"[-LONGEST_NAME:])


def _known_key(file: Path) -> str | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Access).key
    except (OSError, msgspec.MsgspecError):
        return None
