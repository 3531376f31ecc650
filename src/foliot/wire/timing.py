"""When a job runs, as its owner writes it: the fields of a schedule, what they ask for, and how they are told again."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, NamedTuple, assert_never

import msgspec
from msgspec import Meta

from foliot.domain.counted import nth_fire
from foliot.domain.cron import USUAL, Cron, Dst
from foliot.domain.duration import format_duration, parse_duration
from foliot.domain.errors import InvalidField
from foliot.domain.expression import parse_cron
from foliot.domain.jitter import LONGEST as LONGEST_JITTER
from foliot.domain.misfire import USUAL as USUAL_CATCH_UP
from foliot.domain.misfire import CatchUp, Mode
from foliot.domain.phrase import parse_phrase
from foliot.domain.repeat import is_repeat, parse_repeat
from foliot.domain.rrule import recurring
from foliot.domain.rule import take_limits
from foliot.domain.schedule import Every, Plain, Rrule, Steps, repeating
from foliot.domain.spread import is_hashed, spread
from foliot.domain.steps import parse_step
from foliot.domain.zone import check_zone
from foliot.wire.codec import rfc3339

Instant = Annotated[datetime, Meta(tz=True)]
Duration = str | int | float

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
SHORTEST_WINDOW: Final = timedelta(seconds=10)
LONGEST_WINDOW: Final = timedelta(days=31)
MOST_RUNS: Final = 1_000_000_000
RECURRENCES: Final = ("cron_expression", "every", "rrule", "when")
REPLACES: Final = {
    "cronExpression": ("every", "rrule", "when"),
    "every": ("cronExpression", "rrule", "when", "timezone", "dst"),
    "rrule": ("cronExpression", "every", "when"),
    "when": ("cronExpression", "every", "rrule"),
}
"""A job has one recurrence: which fields a new one takes the place of."""
TAKES_ALONG: Final = {
    "cronExpression": ("timezone", "dst", "calendar"),
    "every": ("timezone", "dst", "calendar"),
    "rrule": ("timezone", "dst", "calendar"),
    "when": ("timezone", "dst", "calendar"),
}
"""What means nothing any more once a field is taken away."""


class CatchUpBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which instants are still run when they come up late, and how old they may be."""

    mode: Literal["all", "latest", "none"] = "latest"
    window: Duration = "PT1H"


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a schedule."""

    cron_expression: str | None = None
    every: Duration | None = None
    rrule: str | None = None
    when: str | None = None
    timezone: str | None = None
    dst: Dst | None = None
    schedule_at: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = None
    catch_up: CatchUpBody | None = None
    jitter: Duration | None = None

    @classmethod
    def of(cls, body: Any) -> "Timing":
        """Those of a job, or of a question: instants checked and in UTC, what a text says besides in its own field."""
        fields = {name: getattr(body, name, None) for name in cls.__struct_fields__}
        said = said_in(fields)
        for name, value in (("schedule_at", said.start), ("ends_at", said.until)):
            _agree(fields, name, value)
        if fields["schedule_at"] is None:  # with a start they are instants, and not runs
            _agree(fields, "max_runs", said.number)
        fields["schedule_at"] = check_instant(fields["schedule_at"], "scheduleAt")
        fields["ends_at"] = check_instant(fields["ends_at"], "endsAt")
        if fields["every"] is not None and is_repeat(fields["every"]):
            fields["every"] = parse_repeat(fields["every"], fields["timezone"] or "UTC").step
        if fields["rrule"] is not None:
            fields["rrule"] = take_limits(fields["rrule"], fields["timezone"] or "UTC").rest
        timing = cls(**fields)
        return timing if said.number is None else timing._counted(said.number)

    def _counted(self, number: int) -> "Timing":
        """The same that ends with the n-th instant from its start, if it has a start, unless it ends before."""
        recurrence = self.recurrence()
        if recurrence is None or self.schedule_at is None:
            return self
        last = nth_fire(recurrence, self.schedule_at, number, "rrule" if self.rrule is not None else "every")
        ends = [each for each in (self.ends_at, last) if each is not None and each <= LATEST]
        return msgspec.structs.replace(self, ends_at=min(ends, default=None))

    def recurrence(self, seed: str | None = None) -> Plain | None:
        """What they ask for; none if nothing recurs. InvalidField if they contradict each other.

        `seed` says whose schedule it is: an `H` of its cron expression is hashed from it.
        """
        given = [name for name in RECURRENCES if getattr(self, name) is not None]
        if len(given) > 1:
            first, second = (camel(name) for name in given[:2])
            raise InvalidField(second, f"stands beside {first}", "a job has one recurrence: take one of them out")
        zone = check_zone(self.timezone or "UTC").key
        if self.cron_expression is not None:
            return Cron(parse_cron(self._expression(seed)), zone, self.dst or USUAL)
        if self.rrule is not None:
            return recurring(self.rrule, zone, self.dst or USUAL, self.schedule_at)
        if self.when is not None:
            return parse_phrase(self.when, zone, self.dst or USUAL).recurrence
        step = None if self.every is None else parse_step(self.every, "every")
        if self.dst is not None and (step is None or not step.is_calendrical or zone == "UTC"):
            hint = "leave it out, or count in days, weeks, months or years of a timezone"
            raise InvalidField(
                "dst", "only means something beside cronExpression, rrule, when or calendar steps of a timezone", hint
            )
        if self.timezone is not None and (step is None or not step.is_calendrical):
            hint = "leave it out, or count in days, weeks, months or years, as in P1D"
            raise InvalidField(
                "timezone", "only means something beside cronExpression, rrule, when or calendar steps", hint
            )
        return None if step is None else repeating(step, zone, self.schedule_at, self.dst or USUAL)

    def _expression(self, seed: str | None) -> str:
        expression = self.cron_expression or ""
        if not is_hashed(expression):
            return expression
        if seed is None:
            raise InvalidField("cronExpression", "H is hashed from the job's key or name", "add one of them")
        return spread(expression, seed)

    def catch_up_of(self, recurrence: Plain | None) -> CatchUp:
        """What becomes of late instants; the usual if nothing is said."""
        if self.catch_up is None:
            return USUAL_CATCH_UP
        if recurrence is None:
            raise InvalidField("catchUp", "only means something for a recurring job", "leave it out, or add a schedule")
        window = parse_duration(self.catch_up.window, "catchUp.window")
        if not SHORTEST_WINDOW <= window <= LONGEST_WINDOW:
            raise InvalidField("catchUp.window", "must lie between 10 seconds and 31 days", 'for example "PT1H"')
        return CatchUp(Mode[self.catch_up.mode.upper()], window)

    def jitter_of(self, recurrence: Plain | None) -> timedelta:
        """The window in which a job has its own place; none if nothing is said."""
        if self.jitter is None:
            return timedelta()
        if recurrence is None:
            raise InvalidField("jitter", "only means something for a recurring job", "leave it out, or add a schedule")
        window = parse_duration(self.jitter, "jitter")
        if not timedelta() < window <= LONGEST_JITTER:
            raise InvalidField("jitter", "must be longer than nothing and at most an hour", 'for example "PT10S"')
        return window

    def words(self, recurrence: Plain | None) -> dict[str, Any]:
        """The same on the wire, every text in its canonical form."""
        words = self._recurrence_words(recurrence)
        if isinstance(recurrence, Cron | Steps | Rrule):
            words["timezone"] = recurrence.timezone
        if self.dst not in {None, USUAL}:  # also where it means nothing now: the next expression may need it
            words["dst"] = msgspec.to_builtins(self.dst)
        for name, instant in (("scheduleAt", self.schedule_at), ("endsAt", self.ends_at)):
            if instant is not None:
                words[name] = rfc3339(instant)
        if self.max_runs is not None:
            words["maxRuns"] = self.max_runs
        if self.catch_up is not None:
            catch_up = self.catch_up_of(recurrence)
            words["catchUp"] = {"mode": catch_up.mode.name.lower(), "window": format_duration(catch_up.window)}
        if self.jitter is not None:
            words["jitter"] = format_duration(self.jitter_of(recurrence))
        return words

    def _recurrence_words(self, recurrence: Plain | None) -> dict[str, Any]:
        match recurrence:
            case None:
                return {}
            case _ if self.when is not None:
                return {"when": parse_phrase(self.when).text}
            case Cron():
                return {"cronExpression": self.cron_expression}
            case Every(period=period):
                return {"every": format_duration(period)}
            case Steps(step=step):
                return {"every": str(step)}
            case Rrule(rule=rule):
                return {"rrule": str(rule)}
            case _:
                assert_never(recurrence)


class Said(NamedTuple):
    """What `R5/start/step`, COUNT and UNTIL say about the other fields of a schedule."""

    start: datetime | None = None
    number: int | None = None
    """Of instants from the start, those before now included; without a start, of runs from now on."""
    until: datetime | None = None


def said_in(fields: Mapping[str, Any]) -> Said:
    timezone = fields.get("timezone") or "UTC"
    if is_repeat(fields.get("every")):
        _, start, number = parse_repeat(fields["every"], timezone)
        return Said(start, number)
    if fields.get("rrule") is not None:
        _, number, until = take_limits(fields["rrule"], timezone)
        return Said(None, number, until)
    return Said()


def check_not_over(body: Any, start: datetime | None, end: datetime | None, now: datetime) -> None:
    """Refuse a new schedule of so many instants that have all been: whoever writes it expects another one."""
    said = said_in({name: getattr(body, name) for name in ("every", "rrule", "timezone")})
    if said.number is None or start is None or end is None or end >= now:
        return
    hint = "give it a later start or a greater number, or write the number as maxRuns, which counts runs from now on"
    message = f"all its instants have passed, the last at {rfc3339(end)}"
    raise InvalidField("every" if body.every is not None else "rrule", message, hint)


def seed_of(tenant: int, key: str | None, name: str | None) -> str | None:
    """Whose schedule it is: a job keeps its place as long as it keeps its key or, without one, its name."""
    own = key or name
    return None if own is None else f"{tenant}/{own}"


def _agree(fields: dict[str, Any], name: str, value: Any) -> None:
    """Take what a text says for a field; refused if the field says otherwise."""
    if value is None:
        return
    if fields[name] not in {None, value}:
        source = "every" if is_repeat(fields["every"]) else "rrule"
        part = {"schedule_at": "the start", "ends_at": "UNTIL", "max_runs": "the number"}[name]
        part = "COUNT" if source == "rrule" and name == "max_runs" else part
        hint = f"take one of them out: {part} of {source} already says it"
        raise InvalidField(camel(name), f"contradicts {part} of {source}", hint)
    fields[name] = value


def check_instant(instant: datetime | None, field: str) -> datetime | None:
    """The same instant in UTC; years that the database or a zone's offset would run out of are refused."""
    if instant is None:
        return None
    if not EARLIEST <= instant <= LATEST:
        raise InvalidField(field, "lies before 1970 or after 9998", "instants look like 2026-01-31T09:00:00Z")
    return instant.astimezone(UTC)


def camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
