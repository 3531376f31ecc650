"""Calendars: what they say, which jobs follow them, and which follow an older version still."""

import difflib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from foliot.domain.calendar import Calendar, Named
from foliot.domain.errors import Conflict
from foliot.domain.job import Draft
from foliot.domain.schedule import OnCalendar, calendar_of
from foliot.store.database import Connection, Database, Row
from foliot.store.statements import SQL
from foliot.wire.calendars import NO_CALENDARS, Calendars, UnknownCalendars

Fetch = Callable[..., Awaitable[list[Row]]]
"""A pool's, or a line's."""
Done = TypeVar("Done")

_TRIES = 5
_MOST_KNOWN = 1_000


class CalendarChanged(Exception):  # noqa: N818 - reads aloud
    """A draft was made with what a calendar said before."""


class Bodies:
    """Calendars by digest. What a digest names never changes, so what is known stays true."""

    def __init__(self) -> None:
        self._known: dict[str, Calendar] = {}

    async def learn(self, fetch: Fetch, keys: Iterable[str | None]) -> dict[str, Calendar]:
        """Those that schedules of these keys follow, fetched where they are not known."""
        return await self.get(fetch, {digest for key in keys if key and (digest := calendar_of(key)) is not None})

    async def get(self, fetch: Fetch, digests: set[str]) -> dict[str, Calendar]:
        found = {digest: self._known[digest] for digest in digests if digest in self._known}
        if missing := digests - found.keys():
            rows = await fetch("calendar_bodies", list(missing))
            fresh = {row["digest"]: Calendar.parse(row["body"]) for row in rows}
            if len(self._known) > _MOST_KNOWN:
                self._known.clear()
            self._known.update(fresh)
            found.update(fresh)
        return found


async def fetch_on(connection: Connection, name: str, *arguments: Any) -> list[Row]:
    """Fetch as a pool does, on a connection that one has."""
    return await connection.fetch(SQL[name], *arguments)  # type: ignore[no-any-return]


async def bodies_of(connection: Connection, keys: Iterable[str]) -> dict[str, Calendar]:
    """The calendars that schedules of these keys follow, read inside a transaction."""
    return await Bodies().learn(partial(fetch_on, connection), keys)


class CalendarBook:
    """Finds what drafts need to know of their tenant's calendars, and remembers what never changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bodies = Bodies()

    async def resolving(
        self, tenant: int, deed: Callable[[Calendars], Awaitable[Done]], *, names: Iterable[str] = ()
    ) -> Done:
        """Do it with the calendars that it turns out to need, each asked for once; again if one has changed since.

        `names` are known to be needed.
        """
        wanted = set(names)
        for _ in range(_TRIES):
            known = await self.named(tenant, wanted) if wanted else NO_CALENDARS
            try:
                return await deed(known)
            except UnknownCalendars as unknown:
                wanted |= unknown.names
            except CalendarChanged:
                continue
        raise Conflict("the calendar keeps changing", "repeat the call")

    async def named(self, tenant: int, names: Iterable[str]) -> Calendars:
        """These calendars of a tenant; of those that there are not, what the tenant may have meant."""
        names = set(names)
        rows = await self._database.fetch("calendars_named", tenant, list(names))
        bodies = await self._bodies.get(self._database.fetch, {row["digest"] for row in rows})
        found = {row["name"]: Named(row["id"], bodies[row["digest"]]) for row in rows}
        missing = names - found.keys()
        existing = [row["name"] for row in await self._database.fetch("calendar_names", tenant)] if missing else []
        return Calendars(found, {name: _hint(name, existing) for name in missing})


def _hint(name: str, existing: list[str]) -> str:
    if not existing:
        return "there are none yet: PUT /v1/calendars/{name} makes one"
    near = difflib.get_close_matches(name, existing, n=3, cutoff=0.5)
    further = [other for other in existing if other not in near]
    named = [*near, *further][:10]
    return f"those that exist: {', '.join(named)}" + (" …" if len(existing) > len(named) else "")


async def follow(connection: Connection, drafts: Sequence[Draft]) -> None:
    """Keep what these drafts were made with as it is until the commit, or CalendarChanged."""
    used = {
        draft.calendar: draft.recurrence.calendar.digest
        for draft in drafts
        if draft.calendar is not None and isinstance(draft.recurrence, OnCalendar)
    }
    if used:
        rows = await connection.fetch(SQL["hold_calendars"], list(used))
        if {row["id"]: row["digest"] for row in rows} != used:
            raise CalendarChanged


async def write_followers(connection: Connection, calendars: dict[int, int | None]) -> None:
    """Note which calendar each of these jobs follows."""
    if calendars:
        await connection.execute(SQL["follow_calendars"], list(calendars), list(calendars.values()))


class CalendarRow(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    name: str
    digest: str
    document: dict[str, Any]
    source: str
    version: int
    followed: int
    created_at: datetime
    updated_at: datetime


def _calendar(row: Row) -> CalendarRow:
    return CalendarRow(**{**row, "document": msgspec.json.decode(row["document"])})


async def find_calendar(connection: Connection, tenant: int, name: str, *, lock: bool = False) -> CalendarRow | None:
    row = await connection.fetchrow(SQL["lock_calendar" if lock else "find_calendar"], tenant, name)
    return None if row is None else _calendar(row)


async def list_calendars(connection: Connection, tenant: int, after: str, limit: int) -> list[CalendarRow]:
    return [_calendar(row) for row in await connection.fetch(SQL["list_calendars"], tenant, after, limit)]


class Content(NamedTuple):
    """What a calendar is to say."""

    calendar: Calendar
    document: dict[str, Any]
    source: str


async def put_calendar(connection: Connection, tenant: int, name: str, content: Content) -> bool:
    """Create or replace; whether it is new."""
    calendar = content.calendar
    document = msgspec.json.encode(content.document).decode()
    await connection.execute(SQL["make_calendar_body"], calendar.digest, calendar.body.decode())
    return bool(await connection.fetchval(SQL["put_calendar"], tenant, name, calendar.digest, document, content.source))


async def delete_calendar(connection: Connection, calendar: int) -> None:
    await connection.execute(SQL["delete_calendar"], calendar)


async def jobs_of_calendar(connection: Connection, calendar: int, limit: int) -> list[tuple[int, str]]:
    return [(row["id"], row["name"]) for row in await connection.fetch(SQL["jobs_of_calendar"], calendar, limit)]


class Followers(NamedTuple):
    jobs: int
    pending: int


async def count_followers(connection: Connection, calendars: Sequence[int]) -> dict[int, Followers]:
    rows = await connection.fetch(SQL["count_jobs_of_calendars"], list(calendars))
    return {row["id"]: Followers(row["jobs"], row["pending"]) for row in rows}
