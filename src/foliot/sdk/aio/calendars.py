"""Calendars: days on which jobs do not run."""

from datetime import datetime
from typing import Any

from foliot.sdk import calls
from foliot.sdk.aio.connection import AsyncConnection
from foliot.sdk.aio.pages import AsyncItems
from foliot.sdk.records import Calendar


class AsyncCalendarCalls(AsyncConnection):
    async def list_calendars(self, **query: Any) -> AsyncItems[Calendar]:
        return await self._page(Calendar, "calendars", **query)

    async def get_calendar(self, name: str) -> Calendar:
        return Calendar(await self.request(calls.get("calendars", name)))

    async def put_calendar(self, name: str, **fields: Any) -> Calendar:
        """Create a calendar or replace it: `timezone`, `business_days`, `holidays`, `blackouts`."""
        return Calendar(await self.request(calls.put_calendar(name, fields)))

    async def import_calendar(
        self, name: str, ics: str, *, mode: str | None = None, timezone: str | None = None
    ) -> Calendar:
        """Take over the events of an iCalendar file; `unread` of the answer says which lines could not be read."""
        return Calendar.imported(await self.request(calls.import_calendar(name, ics, mode, timezone)))

    async def preview_calendar(
        self, name: str, *, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> list[dict[str, Any]]:
        """The times at which a calendar allows no work: from now on, or within bounds."""
        return list((await self.request(calls.preview_calendar(name, since, until)))["items"])

    async def delete_calendar(self, name: str) -> Calendar:
        """Delete a calendar that no job follows."""
        return Calendar(await self.request(calls.delete_calendar(name)))
