"""Operations on calendars."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.api.operation import Call, Operation, Reply
from foliot.domain.ics import LARGEST
from foliot.wire.calendar_views import CalendarSummary, CalendarView, ClosedViews, ImportedCalendar
from foliot.wire.calendars import CalendarBody
from foliot.wire.pages import Page
from foliot.wire.timing import Instant, check_instant


class CalendarsQuery(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    cursor: str | None = None


class StretchQuery(msgspec.Struct, forbid_unknown_fields=True, rename={"from_": "from"}):
    from_: Instant | None = None
    until: Instant | None = None


class ImportQuery(msgspec.Struct, forbid_unknown_fields=True):
    mode: Literal["replace", "add"] = "replace"
    timezone: str | None = None


class IcsBody(msgspec.Struct, forbid_unknown_fields=True):
    """An iCalendar file as text; it may also be the body itself, with the content type text/calendar."""

    ics: str


async def list_calendars(call: Call) -> Reply:
    query: CalendarsQuery = call.query
    return Reply(await call.services.calendars.list(call.tenant.id, limit=query.limit, cursor=query.cursor))


async def get_calendar(call: Call) -> Reply:
    return Reply(await call.services.calendars.get(call.tenant.id, call.path["calendar"]))


async def put_calendar(call: Call) -> Reply:
    view, is_new = await call.services.calendars.put(call.tenant.id, call.path["calendar"], call.body, call.condition)
    return Reply(view, status=201 if is_new else 200)


async def import_calendar(call: Call) -> Reply:
    query: ImportQuery = call.query
    imported, is_new = await call.services.calendars.import_(
        call.tenant.id, call.path["calendar"], call.body.ics, timezone=query.timezone, add=query.mode == "add"
    )
    return Reply(imported, status=201 if is_new else 200)


async def preview_calendar(call: Call) -> Reply:
    since, until = check_instant(call.query.from_, "from"), check_instant(call.query.until, "until")
    return Reply(await call.services.calendars.preview(call.tenant.id, call.path["calendar"], since, until))


async def delete_calendar(call: Call) -> Reply:
    return Reply(await call.services.calendars.delete(call.tenant.id, call.path["calendar"], call.condition))


OPERATIONS = (
    Operation(
        name="listCalendars",
        method="GET",
        path="/v1/calendars",
        scope="calendars:read",
        summary="List calendars by name",
        handler=list_calendars,
        query=CalendarsQuery,
        result=Page[CalendarSummary],
    ),
    Operation(
        name="previewCalendar",
        method="GET",
        path="/v1/calendars/{calendar}:preview",
        scope="calendars:read",
        summary="The times at which a calendar allows no work",
        handler=preview_calendar,
        query=StretchQuery,
        result=ClosedViews,
    ),
    Operation(
        name="importCalendar",
        method="POST",
        path="/v1/calendars/{calendar}:import",
        scope="calendars:write",
        summary="Take over the events of an iCalendar file: all-day ones as holidays, timed ones as blackouts",
        handler=import_calendar,
        query=ImportQuery,
        body=IcsBody,
        text=("text/calendar", IcsBody),
        largest_body=2 * LARGEST,
        result=ImportedCalendar,
        also=(201,),
    ),
    Operation(
        name="getCalendar",
        method="GET",
        path="/v1/calendars/{calendar}",
        scope="calendars:read",
        summary="Read a calendar, and how many jobs follow it",
        handler=get_calendar,
        result=CalendarView,
        is_versioned=True,
    ),
    Operation(
        name="putCalendar",
        method="PUT",
        path="/v1/calendars/{calendar}",
        scope="calendars:write",
        summary="Create a calendar, or replace it; its jobs follow within seconds",
        handler=put_calendar,
        body=CalendarBody,
        result=CalendarView,
        also=(201,),
        is_versioned=True,
        is_conditional=True,
    ),
    Operation(
        name="deleteCalendar",
        method="DELETE",
        path="/v1/calendars/{calendar}",
        scope="calendars:write",
        summary="Delete a calendar that no job follows",
        handler=delete_calendar,
        result=CalendarView,
        is_versioned=True,
        is_conditional=True,
    ),
)
