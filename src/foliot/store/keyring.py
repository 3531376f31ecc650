"""Data keys: made, wrapped anew, and put to use."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from foliot.kit.master import Master, Wrapped
from foliot.kit.sealing import new_key
from foliot.store.database import Connection, Database
from foliot.store.jobs import draw_ids
from foliot.store.statements import SQL
from foliot.store.vault import CANARY, open_canary, wrapping


class HowSealed(NamedTuple):
    """How a tenant that has a data key stands."""

    tenant: int
    name: str
    sealed_with: int | None
    """The key that seals what it writes; none if what it writes is not sealed."""
    versions: int
    masters: list[str]
    since: datetime
    """When its newest key was made."""


class Held(NamedTuple):
    tenant: int
    name: str
    sealed_with: int | None


async def how_sealed(database: Database, tenant: int | None = None) -> list[HowSealed]:
    """That tenant, or all that have a data key, by name."""
    return [HowSealed(*row) for row in await database.fetch("how_sealed", tenant)]


async def hold_tenant(connection: Connection, tenant: int) -> Held:
    """Its keys change in nobody else's hands until the transaction ends."""
    return Held(*await connection.fetchrow(SQL["hold_keys_of"], tenant))


async def newest(connection: Connection, tenant: int) -> int:
    """The number of its newest key; 0 if it has none."""
    rows = await connection.fetch(SQL["data_keys"], tenant)
    return rows[-1]["version"] if rows else 0


async def add_key(connection: Connection, master: Master, tenant: int) -> int:
    """Make a data key for a tenant that is held; its number. The first of all leaves a canary."""
    await raise_canary(connection, master)
    version = await newest(connection, tenant) + 1
    wrapped = await master.wrap(new_key(), wrapping(tenant, version))
    await connection.execute(SQL["add_data_key"], tenant, version, *wrapped)
    return version


async def raise_canary(connection: Connection, master: Master) -> None:
    """Make sure that there is one, and that it is of a master key that we have."""
    row = await connection.fetchrow(SQL["read_canary"])
    if row is None:
        await connection.execute(SQL["set_canary"], *await master.wrap(CANARY, CANARY))
        row = await connection.fetchrow(SQL["read_canary"])
    await open_canary(master, Wrapped(*row))


async def rewrap(connection: Connection, master: Master) -> int:
    """Wrap every data key, and the canary, with the current master key; how many were wrapped with another."""
    canary = await connection.fetchrow(SQL["hold_canary"])
    if canary is None:
        return 0
    await open_canary(master, Wrapped(*canary))
    await connection.execute(SQL["change_canary"], *await master.wrap(CANARY, CANARY))
    changed = 0
    for row in await connection.fetch(SQL["all_data_keys"]):
        if row["master"] != master.current:
            context = wrapping(row["tenant"], row["version"])
            plain = await master.unwrap(Wrapped(row["master"], row["wrapped"]), context)
            wrapped = await master.wrap(plain, context)
            await connection.execute(SQL["rewrap_data_key"], row["tenant"], row["version"], *wrapped)
            changed += 1
    return changed


async def put_to_use(connection: Connection, tenant: int, version: int | None) -> None:
    """Seal with it from now on; none to seal no more. All processes know within seconds."""
    await connection.execute(SQL["seal_with"], tenant, version)


async def begin_reseal(connection: Connection, tenant: int, version: int) -> int:
    """Have all that the tenant has stored sealed with that key, in the background; the operation that tells of it."""
    (number,) = await draw_ids(connection, 1)
    await connection.execute(SQL["give_up_reseals"], tenant, f"key version {version} came meanwhile")
    arguments = msgspec.json.encode({"keyVersion": version}).decode()
    await connection.execute(SQL["begin_reseal"], number, tenant, "encryption of what is stored", arguments)
    return int(number)


async def plain_among_newest(database: Database, tenants: Sequence[int]) -> tuple[int, int]:
    """Of the newest payloads of these tenants: how many were looked at, and how many are not sealed."""
    looked_at = plain = 0
    for tenant in tenants:
        (row,) = await database.fetch("plain_among_newest", tenant)
        looked_at, plain = looked_at + row["looked_at"], plain + row["plain"]
    return looked_at, plain
