"""The home of `foliot up`: held by one at a time, and the place where clients on this machine find it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from foliot.cli.compose import CannotStart
from foliot.domain.errors import Conflict
from foliot.kit.postgres import PostgresError
from foliot.kit.postgres.lock import HomeLock
from foliot.kit.settings import Access, client_file
from foliot.services.tenants import Tenants

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


async def introduce(home: Path, url: str, tenants: Tenants) -> None:
    """Write the address and a valid key of the development tenant where clients look; the key stays while it can."""
    file = client_file(home)
    key = _known_key(file)
    if key is None or not await tenants.whose(key):
        with suppress(Conflict):  # it exists from an earlier start
            await tenants.create(TENANT)
        key = await tenants.issue_key(TENANT, "foliot up")
    await tenants.let_serve(key, ["*"])  # the operator's own machine, and keys of before served nothing
    draft = file.with_suffix(".new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_bytes(msgspec.json.encode(Access(url, key)))
    draft.replace(file)


def _known_key(file: Path) -> str | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Access).key
    except (OSError, msgspec.MsgspecError):
        return None
