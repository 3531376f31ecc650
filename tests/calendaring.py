"""Calendars and jobs that follow them, as tests make them."""

from typing import Any

import msgspec

from foliot.services.insights.jobs import job_view
from foliot.wire.calendar_views import CalendarView
from foliot.wire.calendars import CalendarBody, Calendars
from foliot.wire.job_views import JobView
from foliot.wire.jobs import JobBody, draft_of
from world import World


async def put_calendar(
    world: World, name: str = "work", tenant: int | None = None, **fields: Any
) -> tuple[CalendarView, bool]:
    """One of UTC if no other zone is said."""
    body = msgspec.convert({"timezone": "UTC", **fields}, CalendarBody)
    return await world.calendars.put(tenant or world.tenant, name, body)


async def job_on_calendar(world: World, tenant: int | None = None, **fields: Any) -> JobView:
    """Create a job from fields in the wire's spelling; it follows `work` if no other calendar is said."""
    body = msgspec.convert({"name": "report", "handler": "noop", "calendar": "work", **fields}, JobBody)

    async def create(calendars: Calendars) -> bytes:
        draft = draft_of(body, calendars=calendars)
        return await world.control.create(
            tenant or world.tenant,
            draft,
            render=lambda row: msgspec.json.encode(job_view("acme", row, calendars.by_digest)),
        )

    made = await world.calendars.resolving(tenant or world.tenant, create)
    return msgspec.json.decode(made, type=JobView)
