"""What a definition asks for: a second, independent implementation of the schedule rules.

Instants are whole microseconds since the Unix epoch, so that they can be compared and used as keys.
"""

import math
import re
from bisect import bisect_left, bisect_right
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final

import msgspec

from chaos import cron, forms
from chaos.records import digest

MICRO: Final = 1_000_000
_DURATION: Final = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:[.,]\d+)?)S)?)?"
)
_UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_RECURRENCES: Final = ("cronExpression", "every", "rrule", "when")
_REPLACES: Final = {
    name: tuple(other for other in _RECURRENCES if other != name) + (("timezone", "dst") if name == "every" else ())
    for name in _RECURRENCES
}
_TAKES_ALONG: Final = dict.fromkeys(_RECURRENCES, ("timezone", "dst"))

Body = tuple[tuple[str, bytes], ...]
"""A job as its owner wrote it: field names and their JSON, sorted; can be compared and be a key."""


class Definition(msgspec.Struct, frozen=True):
    """What of a job decides when it runs and what its handler receives."""

    payload: str
    """Its digest."""
    expression: str | None = None
    zone: str = "UTC"
    gap: str = "end"
    fold: str = "once"
    period: int | None = None
    step: forms.Step | None = None
    """A period with months in it, or with days of a zone where not all are alike."""
    at: int | None = None
    """scheduleAt: the instant of a one-time job, the anchor of a period, or the time before which cron is silent."""
    ends: int | None = None
    overlap: str = "skip"
    catch_up: str = "latest"
    window: int = 3_600 * MICRO
    """How late an instant may come up and still be run, if `catch_up` wants it."""
    jitter: int = 0
    """The window after its instant in which each run has its place."""
    max_runs: int | None = None
    concurrency: int | None = None
    """How many of its runs may go at once, of each key if it names one."""
    rule: str | None = None
    """What becomes of instants that the one calendar of chaos does not allow; None if the job follows none."""

    @property
    def recurring(self) -> bool:
        return self.expression is not None or self.period is not None or self.step is not None

    @property
    def one_time(self) -> bool:
        return not self.recurring and self.at is not None

    def instants(self, after: float, until: float) -> list[int]:
        """The instants in (after, until] at which a recurring job fires while it is in force."""
        found = self.nominal(after, until)
        first = bisect_left(found, self.at) if self.at is not None else 0
        return found[first : None if self.ends is None else bisect_right(found, self.ends)]

    def away(self, after: float, until: float) -> list[int]:
        """What would have been instants in (after, until] and was not left where it fell."""
        if self.rule is None:
            return []
        first, last = self.at or 0, math.inf if self.ends is None else self.ends
        return [at for at in self._plain(after, until) if _moved(at, self.rule) != at and first <= at <= last]

    def nominal(self, after: float, until: float) -> list[int]:
        """The instants of the recurrence itself in (after, until], wherever the job begins and ends."""
        if self.rule is None:
            return self._plain(after, until)
        plain = self._plain(after - 60, until + 60)
        moved = {at for each in plain if (at := _moved(each, self.rule)) is not None}
        return sorted(at for at in moved if math.floor(after * MICRO) < at <= math.floor(until * MICRO))

    def _plain(self, after: float, until: float) -> list[int]:
        low, high = math.floor(after * MICRO), math.floor(until * MICRO)
        if self.expression is not None:
            # Whole windows are asked for, so that jobs with the same expression share one answer.
            window = (math.floor(after) - 1, math.ceil(until) + 1)
            found = cron.fires(self.expression, self.zone, *window, self.gap, self.fold)
            return [at * MICRO for at in found if low < at * MICRO <= high]
        if self.period is not None:
            start = 0 if self.at is None else self.at
            first = start + ((low - start) // self.period + 1) * self.period
            return list(range(first, high + 1, self.period))
        if self.step is not None:
            return self.step.instants(self.zone, self.at, low, high, self.gap, self.fold)
        return []


def still_wanted(mode: str, window: float, late: float, *, is_last: bool) -> bool:
    """Whether a job that catches up like this wants an instant that came up so late, both in seconds.

    `is_last`: nothing of it that is late as well follows.
    """
    return late <= window and (mode == "all" or (mode == "latest" and is_last))


def closed(minute: int) -> bool:
    """Whether the calendar of chaos allows nothing in this minute since the epoch: every third is closed."""
    return minute % 3 == 2


def _moved(at: int, rule: str) -> int | None:
    """Where the calendar lets an instant take place: at the end of the closed minute, or a second before it.

    What falls between there and the closed minute goes there too, so that what moves back never overtakes what stays.
    """
    minute = at // (60 * MICRO)
    if rule == "previous" and closed(soon := (at + MICRO - 1) // (60 * MICRO)):
        minute = soon
    if not closed(minute):
        return at
    return {"skip": None, "next": (minute + 1) * 60 * MICRO, "previous": (minute * 60 - 1) * MICRO}[rule]


def body_of(written: dict[str, Any]) -> Body:
    """Fields that are null count as left out; a null payload is one that was not given."""
    return tuple(sorted((name, msgspec.json.encode(value)) for name, value in written.items() if value is not None))


def patched(body: Body, patch: dict[str, Any]) -> Body:
    """JSON merge patch: null takes a field away, a recurrence replaces the other one."""
    fields = dict(body)
    for name, value in patch.items():
        if value is not None or name in fields:
            for other in (_TAKES_ALONG if value is None else _REPLACES).get(name, ()):
                fields.pop(other, None)
    for name, value in patch.items():
        if value is None:
            fields.pop(name, None)
        else:
            fields[name] = msgspec.json.encode(value)
    return tuple(sorted(fields.items()))


@cache
def definition_of(body: Body) -> Definition:
    fields = {name: msgspec.json.decode(value) for name, value in body}
    every, at, ends = fields.get("every"), fields.get("scheduleAt"), fields.get("endsAt")
    calendar, zone = fields.get("calendar"), fields.get("timezone") or "UTC"
    step = None if every is None else forms.step(every, zone)
    passing = forms.phrase_as_period(fields["when"]) if "when" in fields else None
    if passing is not None:
        every, zone = passing / MICRO, "UTC"
        del fields["when"]
    catch_up = {"mode": "latest", "window": "PT1H"} | (fields.get("catchUp") or {})
    return Definition(
        payload=digest(fields.get("payload")),
        expression=_expression(fields),
        zone=zone,
        **{rule: value for rule, value in (fields.get("dst") or {}).items() if rule in {"gap", "fold"}},
        period=None if every is None or step is not None else duration(every),
        step=step,
        at=None if at is None else instant(at),
        ends=None if ends is None else instant(ends),
        overlap=fields.get("overlap", "skip"),
        catch_up=catch_up["mode"],
        window=duration(catch_up["window"]),
        jitter=duration(fields.get("jitter") or 0),
        max_runs=fields.get("maxRuns"),
        concurrency=(fields.get("concurrency") or {}).get("limit"),
        rule=calendar.get("rule", "skip") if isinstance(calendar, dict) else calendar and "skip",
    )


def _expression(fields: dict[str, Any]) -> str | None:
    if (rule := fields.get("rrule")) is not None:
        return forms.rule_as_cron(rule)
    if (phrase := fields.get("when")) is not None:
        return forms.phrase_as_cron(phrase)
    return fields.get("cronExpression")


def duration(written: str | float) -> int:
    """Microseconds in `PT1M30S`, or in a number of seconds, written as text or not."""
    if isinstance(written, str) and (match := _DURATION.fullmatch(written.strip().upper())):
        parts = {unit: number.replace(",", ".") for unit, number in match.groupdict("0").items()}
        return round(sum(float(number) * _UNITS[unit] for unit, number in parts.items()) * MICRO)
    return round(float(written) * MICRO)


def instant(written: str | float) -> int:
    """Microseconds since the epoch of an RFC 3339 instant, or of a number of seconds."""
    return round(seconds(written) * MICRO)


def seconds(written: str | float) -> float:
    return _read(written) if isinstance(written, str) else float(written)


@lru_cache(maxsize=100_000)  # every check asks for the same ones again
def _read(written: str) -> float:
    return datetime.fromisoformat(written).timestamp()
