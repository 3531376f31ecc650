# Written by `make sdk` from sdk/aio/calendars.py: change that.
"""Calendars: days on which jobs do not run."""

from datetime import datetime
from typing import Any

from foliot.sdk import calls
from foliot.sdk.client.connection import Connection
from foliot.sdk.client.pages import Items
from foliot.sdk.records import Calendar


class CalendarCalls(Connection):
    def list_calendars(self, **query: Any) -> Items[Calendar]:
        return self._page(Calendar, "calendars", **query)

    def get_calendar(self, name: str) -> Calendar:
        return Calendar(self.request(calls.get("calendars", name)))

    def put_calendar(self, name: str, **fields: Any) -> Calendar:
        """Create a calendar or replace it: `timezone`, `business_days`, `holidays`, `blackouts`."""
        return Calendar(self.request(calls.put_calendar(name, fields)))

    def import_calendar(self, name: str, ics: str, *, mode: str | None = None, timezone: str | None = None) -> Calendar:
        """Take over the events of an iCalendar file; `unread` of the answer says which lines could not be read."""
        return Calendar.imported(self.request(calls.import_calendar(name, ics, mode, timezone)))

    def preview_calendar(
        self, name: str, *, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> list[dict[str, Any]]:
        """The times at which a calendar allows no work: from now on, or within bounds."""
        return list(self.request(calls.preview_calendar(name, since, until))["items"])

    def delete_calendar(self, name: str) -> Calendar:
        """Delete a calendar that no job follows."""
        return Calendar(self.request(calls.delete_calendar(name)))
