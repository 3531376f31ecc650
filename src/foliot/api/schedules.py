"""Operations on schedules that no job has yet."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.api.operation import Call, Operation, Reply
from foliot.domain.cron import USUAL, Dst
from foliot.domain.errors import InvalidField
from foliot.domain.moving import Rule
from foliot.domain.preview import preview
from foliot.domain.schedule import Recurrence
from foliot.kit.clock import wall
from foliot.wire.calendars import Calendars, CalendarUse, recurrence_following
from foliot.wire.timing import Duration, Instant, Timing, check_instant
from foliot.wire.views import FireView, Preview

MOST = 1_000


class PreviewQuery(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    cron_expression: str | None = None
    timezone: str | None = None
    gap: Literal["end", "skip"] | None = None
    fold: Literal["once", "twice"] | None = None
    every: Duration | None = None
    when: str | None = None
    schedule_at: Instant | None = None
    after: Instant | None = None
    calendar: str | None = None
    calendar_rule: Rule = "skip"
    count: Annotated[int, Meta(ge=1, le=MOST)] = 10

    @property
    def dst(self) -> Dst | None:
        return Dst(self.gap or USUAL.gap, self.fold or USUAL.fold) if self.gap or self.fold else None


async def preview_schedule(call: Call) -> Reply:
    query: PreviewQuery = call.query
    timing = Timing.of(query)
    recurrence = timing.recurrence()
    if recurrence is None:
        raise InvalidField("cronExpression", "there is nothing to preview", "give cronExpression, every or when")
    start = check_instant(query.after, "after") or wall()
    if timing.schedule_at is not None:  # no fire before it, and one at it counts
        start = max(start, timing.schedule_at - timing.schedule_at.resolution)
    followed = recurrence if query.calendar is None else await _following(call, recurrence)
    return Reply(
        Preview(
            [
                FireView(each.at, each.local.isoformat(), each.transition)
                for each in preview(followed, start, query.count)
            ]
        )
    )


async def _following(call: Call, recurrence: Recurrence) -> Recurrence:
    """The same on a calendar of the tenant's."""
    use = CalendarUse(call.query.calendar, call.query.calendar_rule)

    async def follow(calendars: Calendars) -> Recurrence:
        return recurrence_following(recurrence, use, calendars)

    return await call.services.calendars.resolving(call.tenant.id, follow)


OPERATIONS = (
    Operation(
        name="previewSchedule",
        method="GET",
        path="/v1/schedules:preview",
        scope="jobs:read",
        summary="The next fires of a recurrence, days on which the clocks change flagged",
        handler=preview_schedule,
        query=PreviewQuery,
        result=Preview,
    ),
)
