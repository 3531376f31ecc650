"""The audit trail in the database: noted with the change it tells of, sealed afterwards."""

import hashlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from foliot.domain.audit import Entry, Link, Outcome
from foliot.domain.job import Draft, Gate, Overlap
from foliot.domain.spec import Spec
from foliot.store.database import Connection, Database, Row
from foliot.store.reading import JobRow
from foliot.store.statements import SQL

_SECRET: Final = frozenset({"headers", "env"})
"""Parts of a handler whose values are often secrets."""


class Deed(NamedTuple):
    """Who is doing what, and from where."""

    tenant: int
    actor: str
    key: str | None
    ip: str | None
    request: str | None
    action: str


DOING: Final[ContextVar[Deed | None]] = ContextVar("doing", default=None)
"""Set where somebody's wish comes in. What the processes do by themselves has none, and is not noted."""


class Note(NamedTuple):
    """What is written down: by whom, about what."""

    deed: Deed
    subject: str | None
    outcome: Outcome
    before: Any = None
    after: Any = None


class Sought(NamedTuple):
    """Which entries a list shows."""

    since: datetime
    until: datetime
    action: str | None = None
    actor: str | None = None
    key: str | None = None
    ip: str | None = None
    request: str | None = None
    outcome: str | None = None
    subject: str | None = None


class Sealed(NamedTuple):
    """An entry as it stands, and where it says that it stands; nowhere yet if it waits to be sealed."""

    entry: Entry
    link: Link | None


async def note(connection: Connection, subject: str, before: Any, after: Any, *, tenant: int | None = None) -> None:
    """Write down a change, in its own transaction, if somebody asked for it. `tenant` is whose thing was changed."""
    if (deed := DOING.get()) is not None:
        whose = deed if tenant is None else deed._replace(tenant=tenant)
        await write(connection, [Note(whose, subject, "done", before, after)])


async def write(connection: Connection, notes: Sequence[Note]) -> None:
    rows = [(*each.deed, each.subject, each.outcome, _json(each.before), _json(each.after)) for each in notes]
    await connection.execute(SQL["note_audit"], *map(list, zip(*rows, strict=True)))


def job_facts(job: JobRow | Draft) -> dict[str, Any]:
    """A job for the trail: whole, but for what may be secret, of which a digest tells whether it changed."""
    facts = {
        "name": job.name,
        "key": job.key,
        "labels": job.labels,
        **job.timing,
        "overlap": job.overlap if isinstance(job, Draft) else Overlap.stored(job.overlap, exclusive=job.exclusive),
        "payload": _digest(job.payload),
        **spec_facts(job.spec),
    }
    if isinstance(job, JobRow):
        facts |= {"gate": Gate(job.gate).name.lower(), "version": job.version}
    return facts


def spec_facts(spec: Spec) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(spec)
    handler = found["handler"]
    for name in _SECRET & handler.keys():
        if isinstance(handler[name], dict):
            handler[name] = {each: _digest(str(value).encode()) for each, value in handler[name].items()}
    return found


def _digest(value: bytes) -> str:
    return f"sha256:{hashlib.sha256(value).hexdigest()[:16]}"


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _entry(row: Row) -> Entry:
    return Entry(**{name: row[name] for name in Entry.__struct_fields__})


def _sealed(row: Row) -> Sealed:
    return Sealed(_entry(row), None if row["position"] is None else Link(row["position"], row["hash"]))


async def list_entries(database: Database, tenant: int, sought: Sought, *, below: int, limit: int) -> list[Sealed]:
    """Newest first."""
    name = "list_audit" if sought.subject is None else "list_audit_of_subject"
    *filters, subject = sought
    arguments = (tenant, below, limit, *filters, *(() if subject is None else (subject,)))
    return [_sealed(row) for row in await database.fetch_anew(name, *arguments)]


async def tenants_to_seal(database: Database, most: int) -> list[int]:
    return [row["tenant"] for row in await database.fetch("tenants_to_seal", most)]


async def hold_chain(connection: Connection, tenant: int) -> Link:
    """The head of a tenant's chain, locked until the transaction ends."""
    await connection.execute(SQL["begin_chain"], tenant)
    return Link(*await connection.fetchrow(SQL["hold_chain"], tenant))


async def unsealed(connection: Connection, tenant: int, most: int) -> list[Entry]:
    return [_entry(row) for row in await connection.fetch(SQL["unsealed"], tenant, most)]


async def seal(connection: Connection, tenant: int, entries: Sequence[Entry], links: Sequence[Link]) -> None:
    """Give these entries their places, of which the last is the chain's new head."""
    places, hashes = [link.position for link in links], [link.hash for link in links]
    await connection.execute(SQL["seal_entries"], [entry.id for entry in entries], places, hashes)
    await connection.execute(SQL["seal_chain"], tenant, places[-1], hashes[-1])


class Chain(NamedTuple):
    tenant: int
    head: Link
    marked: int


async def chains(database: Database, tenant: int | None = None) -> list[Chain]:
    rows = await database.fetch("chains", tenant)
    return [Chain(row["tenant"], Link(row["position"], row["hash"]), row["marked"]) for row in rows]


async def chain_from(database: Database, tenant: int, position: int, most: int) -> list[tuple[Entry, Link]]:
    """What is sealed after that position, in order."""
    rows = await database.fetch("chain_from", tenant, position, most)
    return [(_entry(row), Link(row["position"], row["hash"])) for row in rows]


async def hashes_at(database: Database, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
    """Of those of these places (tenant, position) that exist."""
    tenants, positions = [tenant for tenant, _ in places], [position for _, position in places]
    rows = await database.fetch("hashes_at", tenants, positions)
    return {(row["tenant"], row["position"]): row["hash"] for row in rows}


class LastCheckpoint(NamedTuple):
    number: int
    at: datetime
    body: bytes
    now: datetime


async def last_checkpoint(database: Database) -> LastCheckpoint | None:
    row = await database.fetchrow("last_signed")
    return None if row is None else LastCheckpoint(row["number"], row["at"], row["body"].encode(), row["now"])


async def insert_checkpoint(connection: Connection, number: int, body: bytes, heads: Mapping[int, int]) -> None:
    await connection.execute(SQL["insert_checkpoint"], number, body.decode())
    await connection.execute(SQL["mark_chains"], list(heads), list(heads.values()))


async def clock(database: Database) -> datetime:
    return await database.fetchval("audit_clock")  # type: ignore[no-any-return]


async def count_unsealed(database: Database) -> tuple[int, float]:
    """How many wait to be sealed, up to 10,000, and for how many seconds the oldest has."""
    (row,) = await database.fetch("unsealed_since")
    return row["count"], row["oldest"] or 0.0
