"""What a tenant has stored, page by page, sealed with its present key."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foliot.kit.sealing import CannotOpen, head_of, is_sealed, prefix, text_prefix
from foliot.store.database import Connection, Line, Row
from foliot.store.sealed import CHECKPOINT, ERROR, PAYLOAD, RESULT, TARGET
from foliot.store.statements import SQL
from foliot.store.vault import Lock, Mark, Owner, Vault, place

PAGE: Final = 200
"""Rows in one transaction: those who wait for one of them wait for some milliseconds."""
_OF_BYTES: Final = ("jobs", "versions", "subscriptions", "timers", "runs", "checkpoints")
_OF_TEXT: Final = ("late_results",)
TABLES: Final = (*_OF_BYTES, "letters", "history", *_OF_TEXT)
"""In the order in which things move on, so that what moves meanwhile is met rather than missed."""


class Page(NamedTuple):
    found: int
    changed: int
    last: int
    """The last row's number; where it is the same for several, some of them may be left."""


async def next_reseal(line: Line) -> tuple[int, int] | None:
    """The oldest operation of this kind that is not over, and its tenant."""
    rows = await line.fetch("next_reseal")
    return (rows[0]["id"], rows[0]["tenant"]) if rows else None


async def hold(connection: Connection, operation: int) -> bool:
    """Whether it goes on, and nobody else has hold of it."""
    return bool(await connection.fetch(SQL["hold_reseal"], operation))


async def note(connection: Connection, operation: int, done: int, *, is_last: bool) -> None:
    await connection.execute(SQL["note_resealed"], operation, done, is_last)


async def reseal_page(connection: Connection, vault: Vault, lock: Lock, table: str, first: int) -> Page:
    """Seal the next rows of a table that are not sealed with this key, from number `first` on."""
    bytes_, text = prefix(lock.version), text_prefix(lock.version)
    own = (bytes_,) if table in _OF_BYTES else (text,) if table in _OF_TEXT else (bytes_, text)
    rows = await connection.fetch(SQL[f"{table}_to_reseal"], lock.tenant, first, PAGE, *own)
    if not rows:
        return Page(0, 0, first)
    changed = [each for row in rows if (each := await _resealed(vault, lock, table, row)) is not None]
    if changed:
        columns = [list(column) for column in zip(*changed, strict=True)]
        whose = (lock.tenant,) if table == "history" else ()
        await connection.execute(SQL[f"reseal_{table}"], *columns, *whose)
    return Page(len(rows), len(changed), rows[-1]["id"])


async def reseal_secrets(connection: Connection, vault: Vault, lock: Lock) -> None:
    """All at once: they are few, and small."""
    for row in await connection.fetch(SQL["secrets_to_reseal"], lock.tenant, prefix(lock.version)):
        plain = await vault.open_at(lock.tenant, Mark.SECRET, place(lock.tenant, row["name"], "value"), row["value"])
        value = lock.seal(Mark.SECRET, row["name"], "value", plain)
        await connection.execute(SQL["reseal_secret"], lock.tenant, row["name"], value)


async def _resealed(vault: Vault, lock: Lock, table: str, row: Row) -> Sequence[object] | None:
    """The row as it is to be; none if something in it cannot be opened, and stays as it is."""
    owner = Owner(lock.tenant, row["run"], row["job"])
    result = CHECKPOINT if table == "checkpoints" else RESULT
    try:
        payload = await _bytes(vault, lock, owner, PAYLOAD, row["payload"])
        target = await _bytes(vault, lock, owner, TARGET, row["target"])
        kept = await _bytes(vault, lock, owner, result, row["result"])
    except CannotOpen:
        return None
    error = row["error"]
    if error is not None:
        error = lock.text(row["run"], ERROR, await vault.opened_text(owner, ERROR, error))
    return row["id"], row["at"], payload, target, kept, error


async def _bytes(vault: Vault, lock: Lock, owner: Owner, field: str, value: bytes | None) -> bytes | None:
    if value is None:
        return None
    mark = Mark(head_of(value).mark) if is_sealed(value) else Mark.JOB if owner.run is None else Mark.RUN
    number = owner.job if mark is Mark.JOB else owner.run
    if number is None:
        raise CannotOpen("it was sealed for another place")
    return lock.seal(mark, number, field, await vault.open(owner, field, value))
