"""Why a job fires next, or does not: every gate between it and its next run."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from foliot.domain.capacity import LINES, Fleet, Line, line_gates, queue_gate, worker_gates
from foliot.domain.duration import format_duration
from foliot.domain.gates import (
    Basis,
    Code,
    Estimate,
    Explanation,
    Gate,
    Stand,
    arranged,
    clock_text,
    closed,
    later,
    passed,
    span_text,
    told,
)
from foliot.domain.ids import encode
from foliot.domain.job import Gate as JobGate
from foliot.domain.job import Overlap
from foliot.domain.misfire import GRACE, USUAL, CatchUp, Mode
from foliot.domain.preview import transition_on
from foliot.domain.schedule import Cron, OnCalendar, Recurrence, Rrule, gap, next_fire, taken_away, zone_of

WAY: Final = (
    Code.CANCEL, Code.PAUSE, Code.PARENTS, Code.SCHEDULE, Code.WINDOW, Code.CALENDAR, Code.DAYLIGHT, Code.JITTER,
    Code.CLOCK, Code.CATCH_UP, Code.SCHEDULER, Code.OVERLAP, Code.CONCURRENCY, Code.TENANT, Code.QUEUE,
    Code.QUEUE_WORKERS, Code.HANDLER_WORKERS,
)  # fmt: skip
"""The gates of a job, in the order in which its next fire time passes them."""
SET_BACK: Final = timedelta(seconds=5)
"""A clock that is so far behind what it told before was set back."""
_FIRES_ANYWAY: Final = frozenset(
    {Code.WINDOW, Code.CALENDAR, Code.DAYLIGHT, Code.OVERLAP, Code.QUEUE, Code.QUEUE_WORKERS, Code.HANDLER_WORKERS}
)
"""Closed gates that leave a later fire time, or hold up the run and not the fire time."""
_MOST_TAKEN: Final = 1_000


class Other(NamedTuple):
    """Another job of the graph."""

    id: int
    name: str


class Previous(NamedTuple):
    """The scheduled run from before that is still there."""

    run: int
    scheduled_at: datetime
    started_at: datetime | None


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a job at one moment. One-time jobs are explained by their run."""

    now: datetime
    job: int
    name: str
    gate: JobGate
    fleet: Fleet
    paused_at: datetime | None = None
    recurrence: Recurrence | None = None
    next_at: datetime | None = None
    """The next instant of its schedule, whoever owns it; past if nobody has fired it."""
    after: datetime | None = None
    """The instants behind it are this definition's; none if it owns no instants to come."""
    until: datetime | None = None
    not_before: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = None
    runs_left: int | None = None
    catch_up: CatchUp = USUAL
    phase: timedelta = timedelta()
    calendar: str | None = None
    overlap: Overlap = Overlap.SKIP
    previous: Previous | None = None
    parents: tuple[Other, ...] = ()
    held_roots: tuple[Other, ...] = ()
    """Paused roots of its graph: while they are, it does not fire."""
    lines: tuple[Line, ...] = ()
    path: str | None = None
    schedulers: int = 0
    scheduler_seen: datetime | None = None
    clock_behind: timedelta = timedelta()

    @property
    def following(self) -> datetime | None:
        """Its next fire time, past if it is overdue; none if there is none."""
        if self.recurrence is None or self.after is None or self.next_at is None:
            return None
        fire = self.next_at if self.next_at > self.after else next_fire(self.recurrence, self.after)
        return None if fire is not None and self.until is not None and fire > self.until else fire


def explain_job(facts: JobFacts) -> Explanation:
    """Every gate exactly once; one blocks, or there is an estimate."""
    gates = arranged(_gates(facts))
    fire = facts.following
    shut = {gate.code for gate in gates if gate.stand in {Stand.BLOCKING, Stand.CLOSED}}
    estimate = None
    if fire is not None and shut <= _FIRES_ANYWAY:
        estimate = Estimate(max(fire + facts.phase, facts.now), Basis.SCHEDULE)
    if fire is None or gates[0].stand is Stand.BLOCKING:
        then = "" if estimate is None or fire is None else f" The next fire time is {_local(facts, fire)}."
        return Explanation(gates, told(gates[0]) + then, estimate)
    return Explanation(gates, f"Fires next at {_local(facts, fire)}, in {span_text(fire - facts.now)}.", estimate)


def _gates(facts: JobFacts) -> Iterator[Gate]:
    yield _cancel(facts)
    yield _pause(facts)
    yield _parents(facts)
    bounds = (_window(facts), _calendar(facts))
    yield _schedule(facts, is_told=any(gate.stand is Stand.CLOSED for gate in bounds))
    yield from bounds
    yield _daylight(facts)
    yield _jitter(facts)
    yield from _firing(facts)
    yield _overlap(facts)
    whose = f"job {facts.name!r}"
    yield from (gate for gate in line_gates(facts.lines, whose, facts.path, facts.now) if gate.code is not LINES[1])
    yield queue_gate(facts.fleet, facts.now)
    yield from worker_gates(facts.fleet, facts.now)


def _cancel(facts: JobFacts) -> Gate:
    if facts.gate is JobGate.CANCELLED:
        return closed(Code.CANCEL, "The job was cancelled.", "Create it anew to run it again.")
    return passed(Code.CANCEL, "The job is not cancelled.")


def _pause(facts: JobFacts) -> Gate:
    if facts.gate is not JobGate.PAUSED:
        return passed(Code.PAUSE, "The job is not paused.")
    since = "" if facts.paused_at is None else f" since {clock_text(facts.paused_at, facts.now)}"
    hint = f"`foliot job resume {encode('job', facts.job)}` lets it go on."
    return closed(Code.PAUSE, f"The job has been paused{since}.", hint, since=facts.paused_at)


def _parents(facts: JobFacts) -> Gate:
    if facts.held_roots and facts.gate is JobGate.OPEN:
        first = facts.held_roots[0]
        names = tuple(encode("job", each.id) for each in facts.held_roots)
        says = f"Its graph does not fire while its root {first.name!r} is paused or cancelled."
        return closed(Code.PARENTS, says, f"`foliot job resume {names[0]}` lets a paused one go on.", names=names)
    if not facts.parents:
        return passed(Code.PARENTS, "It depends on no other job.")
    listed = ", ".join(each.name for each in facts.parents)
    says = f"It fires with its graph, and each run waits for those of {listed}."
    return passed(Code.PARENTS, says, names=tuple(encode("job", each.id) for each in facts.parents))


def _schedule(facts: JobFacts, *, is_told: bool) -> Gate:
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


def _window(facts: JobFacts) -> Gate:
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


def _calendar(facts: JobFacts) -> Gate:
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
    says = f"{name} is closed at {_local(facts, nominal)}, when it would fire next."
    return closed(Code.CALENDAR, says, "`foliot calendar preview` shows when.", numbers=numbers, until=fire)


def _daylight(facts: JobFacts) -> Gate:
    fire, plain = facts.following, facts.recurrence
    if fire is None or plain is None:
        return passed(Code.DAYLIGHT, "No change of the clocks concerns it.")
    if isinstance(plain, Cron | Rrule) and plain.dst.gap == "skip" and facts.after is not None:
        kept = msgspec.structs.replace(plain, dst=msgspec.structs.replace(plain.dst, gap="end"))
        lost = next_fire(kept, max(facts.now, facts.after))
        if lost is not None and lost < fire:
            says = f'The clocks skip its fire time at {_local(facts, lost)}, and `dst.gap` is "skip".'
            return closed(Code.DAYLIGHT, says, '`dst.gap`: "end" fires when the gap ends.', until=fire)
    match transition_on(zone_of(plain), fire):
        case "gap":
            return passed(Code.DAYLIGHT, "The clocks skip an hour on that day.")
        case "fold":
            return passed(Code.DAYLIGHT, "The clocks show an hour twice on that day.")
        case None:
            return passed(Code.DAYLIGHT, "The clocks do not change on that day.")


def _jitter(facts: JobFacts) -> Gate:
    numbers = {"seconds": facts.phase.total_seconds()}
    if not facts.phase:
        return passed(Code.JITTER, "Its runs start at their fire times.", numbers=numbers)
    return passed(Code.JITTER, f"Its runs start {span_text(facts.phase)} after their fire times.", numbers=numbers)


def _firing(facts: JobFacts) -> Iterator[Gate]:
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
    says = f"Its fire time {_local(facts, fire)} is {span_text(late)} late, and its `catchUp` {how}: it is missed."
    return closed(Code.CATCH_UP, says, "`foliot job backfill` runs what was missed.", numbers=numbers, since=fire)


def _overlap(facts: JobFacts) -> Gate:
    before = facts.previous
    if before is None:
        return passed(Code.OVERLAP, "No scheduled run from before is still there.")
    run = encode("run", before.run)
    says = f"Its run of {clock_text(before.scheduled_at, facts.now)} ({run}) is still there"
    match facts.overlap:
        case Overlap.ALLOW:
            return passed(Code.OVERLAP, f"{says}, which is allowed.", names=(run,))
        case Overlap.CANCEL_PREVIOUS:
            return passed(Code.OVERLAP, f"{says}, and is cancelled when the next one comes.", names=(run,))
        case Overlap.SKIP:
            says += ": unless it ends before, the next fire time is skipped."
        case _:
            says += ": the next one waits for its end."
    hint = f"`foliot run explain {run}` says what it does."
    return closed(Code.OVERLAP, says, hint, since=before.started_at, names=(run,))


def _local(facts: JobFacts, at: datetime) -> str:
    """As the schedule's own clock shows it."""
    if facts.recurrence is None:
        return clock_text(at, facts.now)
    zone = zone_of(facts.recurrence)
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S} {zone.key}"
