"""Looks ahead: at schedules that no job has yet, and at what an edit makes of a job's."""

from asyncio import to_thread
from collections.abc import Collection
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.api.addressed import job_of
from foliot.api.operation import Call, Operation, Reply
from foliot.api.patch import merged
from foliot.domain.cron import USUAL, Dst
from foliot.domain.errors import InvalidField, one_of
from foliot.domain.job import Draft
from foliot.domain.moving import Rule
from foliot.domain.preview import Fire, Outlook, compare, look_ahead
from foliot.kit.zonedata import zone_data
from foliot.services.insights.jobs import draft_again
from foliot.wire.calendars import Calendars, CalendarUse, recurrence_following
from foliot.wire.jobs import draft_of
from foliot.wire.preview import LOSABLE, FireView, Preview
from foliot.wire.timing import MOST_RUNS, Duration, Instant, Timing, camel, check_instant, seed_of

MOST = 1_000


class PreviewQuery(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    job: str | None = None
    key: str | None = None
    name: str | None = None
    cron_expression: str | None = None
    timezone: str | None = None
    gap: Literal["end", "skip"] | None = None
    fold: Literal["once", "twice"] | None = None
    every: Duration | None = None
    rrule: str | None = None
    when: str | None = None
    schedule_at: Instant | None = None
    ends_at: Instant | None = None
    max_runs: Annotated[int, Meta(ge=1, le=MOST_RUNS)] | None = None
    after: Instant | None = None
    calendar: str | None = None
    calendar_rule: Rule = "skip"
    without: str | None = None
    """Fields that the job would lose, with commas between."""
    count: Annotated[int, Meta(ge=1, le=MOST)] = 10

    @property
    def dst(self) -> Dst | None:
        return Dst(self.gap or USUAL.gap, self.fold or USUAL.fold) if self.gap or self.fold else None

    @property
    def use(self) -> CalendarUse | None:
        return None if self.calendar is None else CalendarUse(self.calendar, self.calendar_rule)

    def edit(self) -> bytes:
        """The same as the change of a job that it asks about."""
        fields = {camel(name): getattr(self, name, None) for name in ("name", *Timing.__struct_fields__)}
        fields["calendar"] = self.use
        given = {name: value for name, value in fields.items() if value is not None}
        return msgspec.json.encode({**given, **dict.fromkeys(self._lost(given))})

    def _lost(self, given: Collection[str]) -> list[str]:
        names = [] if self.without is None else self.without.split(",")
        for name in names:
            if name not in LOSABLE:
                raise InvalidField("without", f"no schedule has a field {name[:40]!r}", one_of(LOSABLE))
            if name in given:
                raise InvalidField("without", f"{name} is given as well", "leave it out of one of the two")
        return names


async def preview_schedule(call: Call) -> Reply:
    query: PreviewQuery = call.query
    start = check_instant(query.after, "after") or await call.services.control.clock()

    async def look(calendars: Calendars) -> list[Fire]:
        if query.job is None:
            return await to_thread(look_ahead, _outlook(call, calendars), start, query.count)
        if query.key is not None:
            raise InvalidField("key", "stands beside job", "a job's key cannot be changed: leave it out")
        job = job_of(query.job)
        row = await call.services.control.read(call.tenant.id, job)
        present = draft_again(call.tenant.id, row, calendars)
        asked = draft_of(merged(row, query.edit()), call.tenant.id, calendars)
        left = await call.services.control.runs_left(call.tenant.id, job)
        # A number that stays goes on with what is left of it; another one is counted from the edit on.
        most = left if asked.max_runs == present.max_runs else asked.max_runs
        # A thousand fires of a rare recurrence are a second's work: others are answered meanwhile.
        return await to_thread(compare, _drafted(present, left), _drafted(asked, most), start, query.count)

    fires = await call.services.calendars.resolving(call.tenant.id, look)
    views = [FireView(each.at, each.local.isoformat(), each.transition, each.change) for each in fires]
    return Reply(Preview(views, zone_data().version))


def _outlook(call: Call, calendars: Calendars) -> Outlook:
    query: PreviewQuery = call.query
    if query.without is not None:
        raise InvalidField("without", "there is no job that could lose it", "say which: job=job_…")
    timing = Timing.of(query)
    recurrence = timing.recurrence(seed_of(call.tenant.id, query.key, query.name))
    if recurrence is None:
        hint = "give cronExpression, every, rrule or when"
        raise InvalidField("cronExpression", "there is nothing to preview", hint)
    followed = recurrence if query.use is None else recurrence_following(recurrence, query.use, calendars)
    return Outlook(followed, timing.schedule_at, timing.ends_at, timing.max_runs)


def _drafted(draft: Draft, most: int | None) -> Outlook:
    """What a job fires, if every fire makes one of its `most` runs."""
    return Outlook(draft.recurrence, draft.not_before, draft.ends_at, most, once=draft.run_at)


OPERATIONS = (
    Operation(
        name="previewSchedule",
        method="GET",
        path="/v1/schedules:preview",
        scope="jobs:read",
        summary="The next fires of a recurrence, or what an edit makes of a job's; days of clock changes are flagged",
        handler=preview_schedule,
        query=PreviewQuery,
        result=Preview,
    ),
)
