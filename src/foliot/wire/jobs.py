"""Jobs on the wire: what an owner writes, and what comes back."""

import re
from datetime import timedelta
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.domain.cron import Dst
from foliot.domain.errors import InvalidField
from foliot.domain.fairness import parse_priority
from foliot.domain.job import LONGEST_NAME, MOST_LABELS, Draft
from foliot.domain.labels import MOST, labels_of
from foliot.domain.retry import MOST_RETRIES
from foliot.domain.spec import LARGEST_PAYLOAD, Handler, Spec
from foliot.wire.calendars import NO_CALENDARS, Calendars, CalendarUse, UnknownCalendars, following, use_of
from foliot.wire.codec import CONTROL
from foliot.wire.graphs import DependsOn, needs_of
from foliot.wire.handlers import Given, handler_of
from foliot.wire.limits import ConcurrencyBody, OverlapWord, concurrency_of, overlap_of
from foliot.wire.retries import BackoffBody, RetryRules, backoff_of, rules_of
from foliot.wire.timing import MOST_RUNS, CatchUpBody, Duration, Instant, Timing, seed_of

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
MaxRetries = Annotated[int, Meta(ge=0, le=MOST_RETRIES, description="3 unless set; 0 with `atMostOnce`")]
OnDisconnect = Annotated[
    Literal["finish", "stop"],
    Meta(description="`finish` unless set; `stop` with `atMostOnce` and with a limit of 1"),
]
Requires = Annotated[
    list[str],
    Meta(max_length=MOST, description="Labels that a worker must carry to run it: `[a-z0-9][a-z0-9._-]{0,62}` each"),
]

NO_PAYLOAD: Final = b"null"
_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")


class Policy(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How to run: shared by jobs and ad-hoc runs."""

    handler: Given
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    priority: str | int = "normal"
    queue: str = "default"
    requires: Requires = []
    max_retries: MaxRetries | UnsetType = UNSET
    backoff: BackoffBody = BackoffBody()
    retry: RetryRules = []
    timeout_seconds: Annotated[float, Meta(ge=0.001, le=604_800)] = 300
    delivery: Literal["atLeastOnce", "atMostOnce"] = "atLeastOnce"
    on_disconnect: OnDisconnect | UnsetType = UNSET
    concurrency: ConcurrencyBody | None = None


class JobBody(Policy, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A job as its owner writes it."""

    name: Name
    key: str | None = None
    cron_expression: str | None = None
    timezone: str | None = None
    dst: Dst | None = None
    every: Duration | None = None
    rrule: str | None = None
    when: str | None = None
    schedule_at: Instant | None = None
    ends_at: Instant | None = None
    max_runs: Annotated[int, Meta(ge=1, le=MOST_RUNS)] | None = None
    catch_up: CatchUpBody | None = None
    jitter: Duration | None = None
    calendar: str | CalendarUse | None = None
    labels: dict[str, str] = {}
    overlap: OverlapWord = "skip"
    depends_on: DependsOn = []


class JobBatch(msgspec.Struct, forbid_unknown_fields=True):
    """Up to 10,000 jobs, created all or none."""

    jobs: Annotated[list[JobBody], Meta(min_length=1, max_length=10_000)]


def spec_of(body: Policy, *, handler: Handler | None = None) -> Spec:
    """The spec that this policy asks for, or InvalidField."""
    if not _QUEUE.fullmatch(body.queue):
        raise InvalidField("queue", "not a queue name", "lower-case letters, digits, '.', '_' and '-', at most 63")
    at_most_once = body.delivery == "atMostOnce"
    one_by_one = body.concurrency is not None and body.concurrency.limit == 1
    usual = usual_end(at_most_once=at_most_once, one_by_one=one_by_one)
    return Spec(
        handler=handler or handler_of(body.handler),
        queue=body.queue,
        priority=parse_priority(body.priority),
        max_retries=usual_retries(at_most_once=at_most_once) if body.max_retries is UNSET else body.max_retries,
        backoff=backoff_of(body.backoff),
        retry=rules_of(body.retry) or UNSET,
        timeout=timedelta(seconds=body.timeout_seconds),
        delivery="atMostOnce" if at_most_once else UNSET,
        on_disconnect="stop" if (body.on_disconnect or usual) == "stop" else UNSET,
        end_is_said=True if body.on_disconnect == usual else UNSET,
        concurrency=UNSET if body.concurrency is None else concurrency_of(body.concurrency),
        requires=labels_of(body.requires, "requires") or UNSET,
    )


def usual_retries(*, at_most_once: bool) -> int:
    return 0 if at_most_once else 3


def usual_end(*, at_most_once: bool, one_by_one: bool) -> Literal["finish", "stop"]:
    """What becomes of a handler whose worker is cut off from the database, unless its owner says so."""
    return "stop" if at_most_once or one_by_one else "finish"


def payload_of(body: Policy) -> bytes:
    return NO_PAYLOAD if isinstance(body.payload, msgspec.UnsetType) else check_payload(bytes(body.payload))


def check_payload(payload: bytes) -> bytes:
    """Payloads are kept and handed on as they came, so what no worker could read is refused here."""
    if len(payload) > LARGEST_PAYLOAD:
        hint = "store large data elsewhere and pass a reference"
        raise InvalidField("payload", f"is {len(payload):,} bytes of JSON; at most {LARGEST_PAYLOAD:,} are taken", hint)
    try:
        msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidField("payload", f"cannot be read back: {error}", "send numbers and text that exist") from None
    return payload


def check_key(key: str) -> str:
    if not _LABEL.fullmatch(key):
        raise InvalidField("key", "not a key", "letters, digits, '.', '_', '/' and '-', at most 63")
    return key


def draft_of(body: JobBody, tenant: int | None = None, calendars: Calendars = NO_CALENDARS) -> Draft:
    """Check a job and make it whole, or raise InvalidField; without its tenant, no `H` can be hashed.

    `calendars` are those of the tenant that have been asked for; one that has not is UnknownCalendars, when all else is
    in order.
    """
    needs = needs_of(body.depends_on)
    timing = Timing.of(body)
    recurrence = timing.recurrence(None if tenant is None else seed_of(tenant, body.key, body.name))
    if timing.ends_at is not None:
        if recurrence is None:
            raise InvalidField("endsAt", "only a recurring job can end", "leave it out, or add a schedule")
        if timing.schedule_at is not None and timing.ends_at < timing.schedule_at:
            raise InvalidField("endsAt", "lies before scheduleAt", "the job would never run")
    if timing.max_runs is not None and recurrence is None:
        raise InvalidField("maxRuns", "only a recurring job runs more than once", "leave it out, or add a schedule")
    spec, payload = spec_of(body), payload_of(body)
    # Whoever runs it by hand may bring the payload: what no schedule runs needs none of its own.
    is_bare = recurrence is None and timing.schedule_at is None and not needs and payload == NO_PAYLOAD
    draft = Draft(
        name=_readable(body.name, "name"),
        key=None if body.key is None else check_key(body.key),
        spec=spec,
        payload=payload,
        labels=_labels(body.labels),
        overlap=overlap_of(body.overlap, is_recurring=recurrence is not None),
        limit_key=None if is_bare else spec.key_of(payload),
        timing=timing.words(recurrence),
        recurrence=recurrence,
        run_at=timing.schedule_at if recurrence is None else None,
        not_before=timing.schedule_at if recurrence is not None else None,
        ends_at=timing.ends_at,
        max_runs=timing.max_runs,
        catch_up=timing.catch_up_of(recurrence),
        jitter=timing.jitter_of(recurrence),
        depends_on=needs,
    )
    return draft if body.calendar is None else following(draft, body.calendar, calendars)


def drafts_of(batch: JobBatch, tenant: int | None = None, calendars: Calendars = NO_CALENDARS) -> list[Draft]:
    """Check every job of a batch; InvalidField names the one that is wrong: `jobs[3].cronExpression`."""
    names = {use_of(body.calendar).name for body in batch.jobs if body.calendar is not None}
    if unknown := names - calendars.found.keys() - calendars.missing.keys():
        raise UnknownCalendars(unknown)  # all of them at once: the answer is one question to the store
    drafts: list[Draft] = []
    keys: dict[str, int] = {}
    for index, body in enumerate(batch.jobs):
        try:
            draft = draft_of(body, tenant, calendars)
        except InvalidField as error:
            raise error.within(f"jobs[{index}]") from None
        if draft.key is not None and (first := keys.setdefault(draft.key, index)) != index:
            raise InvalidField(f"jobs[{index}].key", f"is the key of jobs[{first}] too", "a key names one job")
        drafts.append(draft)
    return drafts


def _labels(labels: dict[str, str]) -> dict[str, str]:
    if len(labels) > MOST_LABELS:
        raise InvalidField("labels", f"more than {MOST_LABELS} labels", "put what is not filtered by into the payload")
    for name, value in labels.items():
        if not _LABEL.fullmatch(name) or len(value) > 200:
            raise InvalidField(
                "labels", f"{name[:40]!r} is not a label", "short names, values of at most 200 characters"
            )
        _readable(value, "labels")
    return labels


def _readable(text: str, field: str) -> str:
    """Control characters would break terminals and logs, and PostgreSQL keeps no NUL in text."""
    if CONTROL.search(text):
        raise InvalidField(field, "contains control characters", "leave out line breaks, tabs and the like")
    return text
