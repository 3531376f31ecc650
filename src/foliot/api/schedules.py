"""Operations on schedules that no job has yet."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.api.operation import Call, Operation, Reply
from foliot.domain.cron import USUAL, Dst
from foliot.domain.errors import InvalidField
from foliot.domain.preview import preview
from foliot.kit.clock import wall
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
    return Reply(
        Preview(
            [
                FireView(each.at, each.local.isoformat(), each.transition)
                for each in preview(recurrence, start, query.count)
            ]
        )
    )


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
