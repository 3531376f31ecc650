"""Gates between a job and its next fire time: whether there is one, what takes it away, and who fires it in time."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import msgspec

from foliot.domain.duration import format_duration
from foliot.domain.gates import Code, Gate, clock_text, closed, later, passed, span_text
from foliot.domain.ids import encode
from foliot.domain.job import Gate as JobGate
from foliot.domain.job_facts import JobFacts, Other
from foliot.domain.misfire import GRACE, Mode
from foliot.domain.preview import transition_on
from foliot.domain.schedule import Cron, OnCalendar, Rrule, Steps, gap, next_fire, taken_away, zone_of

SET_BACK: Final = timedelta(seconds=5)
"""A clock that is so far behind what it told before was set back."""
_MOST_TAKEN: Final = 1_000


def schedule_gate(facts: JobFacts, *, is_told: bool) -> Gate:
    """Whether anything fires at all, unless a later gate tells why not."""
    if facts.recurrence is not None:
        is_due = facts.gate is JobGate.OPEN and not facts.held_roots
        if facts.following is None and is_due and not is_told:
            return closed(Code.SCHEDULE, "Its recurrence has no fire time left.", "Give it another schedule.")
        return passed(Code.SCHEDULE, "It has a schedule.")
    start = encode("job", (facts.parents or (Other(facts.job, ""),))[0].id)
    if facts.parents:
        return closed(Code.SCHEDULE, "Its graph has no schedule.", "Somebody starts it at a root: `foliot job run`.")
    return closed(Code.SCHEDULE, "It has no schedule.", f"It runs when somebody starts it: `foliot job run {start}`.")


def window_gate(facts: JobFacts) -> Gate:
    now, left = (
        facts.now,
        {} if facts.runs_left is None else {"runsLeft": facts.runs_left, "maxRuns": facts.max_runs or 0},
    )
    if facts.runs_left == 0:
        says = f"It has had all its {facts.max_runs or 0:,} runs."
        return closed(Code.WINDOW, says, "Raise `maxRuns`, or take it away.", numbers=left)
    end = facts.ends_at or facts.until
    over = facts.gate is JobGate.OPEN and facts.recurrence is not None and facts.following is None
    if end is not None and (over or end < now):
        has = "passed at" if end < now else "comes before another fire time:"
        hint = "Move `endsAt`, or take it away."
        return closed(Code.WINDOW, f"Its end has {has} {clock_text(end, now)}.", hint, numbers=left, until=end)
    if facts.not_before is not None and facts.not_before > now and facts.recurrence is not None:
        says = f"It does not fire before {clock_text(facts.not_before, now)} (`scheduleAt`)."
        return closed(Code.WINDOW, says, numbers=left, until=facts.not_before)
    bound = "It has no end." if end is None else f"It goes on until {clock_text(end, now)}."
    return passed(Code.WINDOW, bound, numbers=left, until=end)


def calendar_gate(facts: JobFacts) -> Gate:
    if not isinstance(facts.recurrence, OnCalendar) or facts.after is None:
        return passed(Code.CALENDAR, "It follows no calendar.")
    name = facts.calendar or "its calendar"
    begin, fire = max(facts.now, facts.after), facts.following
    nominal = next_fire(facts.recurrence.recurrence, begin)
    if fire is None or nominal is None:
        hint = "Open the calendar, or let the job follow another."
        return closed(Code.CALENDAR, f"{name} allows no fire time, as far as can be seen.", hint)
    taken = list(islice(taken_away(facts.recurrence, begin, fire), _MOST_TAKEN)) if nominal < fire else []
    numbers = {"takenAway": len(taken)}
    if not taken:
        return passed(Code.CALENDAR, f"{name} is open then.", numbers=numbers)
    says = f"{name} is closed at {local_text(facts, nominal)}, when it would fire next."
    return closed(Code.CALENDAR, says, "`foliot calendar preview` shows when.", numbers=numbers, until=fire)


def daylight_gate(facts: JobFacts) -> Gate:
    fire, plain = facts.following, facts.recurrence
    if fire is None or plain is None:
        return passed(Code.DAYLIGHT, "No change of the clocks concerns it.")
    if isinstance(plain, Cron | Rrule | Steps) and plain.dst.gap == "skip" and facts.after is not None:
        kept = msgspec.structs.replace(plain, dst=msgspec.structs.replace(plain.dst, gap="end"))
        lost = next_fire(kept, max(facts.now, facts.after))
        if lost is not None and lost < fire:
            says = f'The clocks skip its fire time at {local_text(facts, lost)}, and `dst.gap` is "skip".'
            return closed(Code.DAYLIGHT, says, '`dst.gap`: "end" fires when the gap ends.', until=fire)
    match transition_on(zone_of(plain), fire):
        case "gap":
            return passed(Code.DAYLIGHT, "The clocks skip an hour on that day.")
        case "fold":
            return passed(Code.DAYLIGHT, "The clocks show an hour twice on that day.")
        case None:
            return passed(Code.DAYLIGHT, "The clocks do not change on that day.")


def jitter_gate(facts: JobFacts) -> Gate:
    wait = facts.wait
    numbers = {"seconds": wait.total_seconds()}
    if not wait:
        return passed(Code.JITTER, "Its runs start at their fire times.", numbers=numbers)
    return passed(Code.JITTER, f"Its runs start {span_text(wait)} after their fire times.", numbers=numbers)


def firing_gates(facts: JobFacts) -> Iterator[Gate]:
    """Whether somebody is there to fire, and in time."""
    behind = {"seconds": facts.clock_behind.total_seconds()}
    if facts.clock_behind > SET_BACK:
        by = span_text(facts.clock_behind)
        says = f"The database's clock was set back by {by}: nothing fires until it has caught up."
        yield closed(Code.CLOCK, says, "Look after its time source.", numbers=behind)
    else:
        yield passed(Code.CLOCK, "The database's clock goes forward.", numbers=behind)
    fire = facts.following
    late = timedelta() if fire is None else max(facts.now - fire, timedelta())
    yield _catch_up(facts, fire, late)
    numbers = {"schedulers": facts.schedulers, "lateSeconds": round(late.total_seconds(), 3)}
    if not facts.schedulers and facts.recurrence is not None:
        seen = facts.scheduler_seen
        heard = "" if seen is None else f"; the last was heard of at {clock_text(seen, facts.now)}"
        yield closed(
            Code.SCHEDULER, f"No scheduler lives{heard}.", "Start one: `foliot scheduler`.", numbers=numbers, since=seen
        )
    elif late > GRACE:
        says = f"Its fire time is {span_text(late)} late, though schedulers live."
        yield closed(Code.SCHEDULER, says, "`foliot doctor` and the log of the scheduler tell more.", numbers=numbers)
    else:
        yield passed(Code.SCHEDULER, "Schedulers live, or none is needed.", numbers=numbers)


def _catch_up(facts: JobFacts, fire: datetime | None, late: timedelta) -> Gate:
    window = facts.catch_up.window
    numbers = {"windowSeconds": window.total_seconds(), "lateSeconds": round(late.total_seconds(), 3)}
    if fire is None or facts.recurrence is None or late <= GRACE:
        return passed(Code.CATCH_UP, "It is not late.", numbers=numbers)
    if not facts.schedulers:
        return later(Code.CATCH_UP, "Whether it is caught up with is decided when it is fired.", numbers=numbers)
    further = gap(facts.recurrence, fire, facts.now - GRACE, most=1)
    last = fire if further is None else further.last
    if facts.catch_up.mode is not Mode.NONE and facts.now - last <= window:
        return passed(Code.CATCH_UP, "It is late, and is caught up with.", numbers=numbers)
    how = "catches up with nothing" if facts.catch_up.mode is Mode.NONE else f"allows {format_duration(window)}"
    says = f"Its fire time {local_text(facts, fire)} is {span_text(late)} late, and its `catchUp` {how}: it is missed."
    return closed(Code.CATCH_UP, says, "`foliot job backfill` runs what was missed.", numbers=numbers, since=fire)


def local_text(facts: JobFacts, at: datetime) -> str:
    """As the schedule's own clock shows it."""
    if facts.recurrence is None:
        return clock_text(at, facts.now)
    zone = zone_of(facts.recurrence)
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S} {zone.key}"
