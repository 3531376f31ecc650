"""When a job runs, as its owner writes it: the fields of a schedule, what they ask for, and how they are told again."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from foliot.domain.cron import USUAL, Cron, Dst
from foliot.domain.duration import format_duration
from foliot.domain.errors import InvalidField
from foliot.domain.expression import parse_cron
from foliot.domain.phrase import parse_phrase
from foliot.domain.schedule import Every, Recurrence, Steps, repeating
from foliot.domain.steps import parse_step
from foliot.domain.zone import check_zone
from foliot.wire.codec import rfc3339

Instant = Annotated[datetime, Meta(tz=True)]
Duration = str | int | float

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
_RECURRENCES: Final = ("cron_expression", "every", "when")
REPLACES: Final = {
    "cronExpression": ("every", "when"),
    "every": ("cronExpression", "when", "timezone", "dst"),
    "when": ("cronExpression", "every"),
}
"""A job has one recurrence: which fields a new one takes the place of."""
TAKES_ALONG: Final = {"cronExpression": ("timezone", "dst"), "every": ("timezone",), "when": ("timezone", "dst")}
"""What means nothing any more once a field is taken away."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a schedule."""

    cron_expression: str | None = None
    every: Duration | None = None
    when: str | None = None
    timezone: str | None = None
    dst: Dst | None = None
    schedule_at: datetime | None = None
    ends_at: datetime | None = None

    @classmethod
    def of(cls, body: Any) -> "Timing":
        """Those of a job, or of a question; its instants checked and in UTC."""
        fields = {name: getattr(body, name, None) for name in cls.__struct_fields__}
        fields["schedule_at"] = check_instant(fields["schedule_at"], "scheduleAt")
        fields["ends_at"] = check_instant(fields["ends_at"], "endsAt")
        return cls(**fields)

    def recurrence(self) -> Recurrence | None:
        """What they ask for; none if nothing recurs. InvalidField if they contradict each other."""
        given = [name for name in _RECURRENCES if getattr(self, name) is not None]
        if len(given) > 1:
            first, second = (_camel(name) for name in given[:2])
            raise InvalidField(second, f"stands beside {first}", "a job has one recurrence: take one of them out")
        zone = check_zone(self.timezone or "UTC").key
        if self.cron_expression is not None:
            return Cron(parse_cron(self.cron_expression), zone, self.dst or USUAL)
        if self.when is not None:
            return parse_phrase(self.when, zone, self.dst or USUAL).recurrence
        if self.dst is not None:
            raise InvalidField("dst", "only means something beside cronExpression or when", "leave it out")
        step = None if self.every is None else parse_step(self.every, "every")
        if self.timezone is not None and (step is None or not step.is_calendrical):
            hint = "leave it out, or count in days, weeks, months or years, as in P1D"
            raise InvalidField("timezone", "only means something beside cronExpression, when or calendar steps", hint)
        return None if step is None else repeating(step, zone, self.schedule_at)

    def words(self, recurrence: Recurrence | None) -> dict[str, Any]:
        """The same on the wire, every text in its canonical form."""
        words: dict[str, Any] = {}
        match recurrence:
            case Cron() | Every() | Steps() if self.when is not None:
                words["when"] = parse_phrase(self.when).text
            case Cron():
                words["cronExpression"] = self.cron_expression
            case Every(period=period):
                words["every"] = format_duration(period)
            case Steps(step=step):
                words["every"] = str(step)
            case None:
                pass
        if isinstance(recurrence, Cron | Steps):
            words["timezone"] = recurrence.timezone
        if self.dst not in {None, USUAL}:  # also where it means nothing now: the next expression may need it
            words["dst"] = msgspec.to_builtins(self.dst)
        if self.schedule_at is not None:
            words["scheduleAt"] = rfc3339(self.schedule_at)
        if self.ends_at is not None:
            words["endsAt"] = rfc3339(self.ends_at)
        return words


def check_instant(instant: datetime | None, field: str) -> datetime | None:
    """The same instant in UTC; years that the database or a zone's offset would run out of are refused."""
    if instant is None:
        return None
    if not EARLIEST <= instant <= LATEST:
        raise InvalidField(field, "lies before 1970 or after 9998", "instants look like 2026-01-31T09:00:00Z")
    return instant.astimezone(UTC)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
