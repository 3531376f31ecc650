"""Dead letters on the wire: which are meant, what is to be done with them, and how they look."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from foliot.domain.backfill import MOST_AT_ONCE
from foliot.domain.errorclass import LONGEST_NAME as LONGEST_CLASS
from foliot.domain.errors import InvalidField
from foliot.domain.ids import decode
from foliot.domain.job import LONGEST_NAME
from foliot.domain.letters import MOST_BY_ID, Selection, Sweep
from foliot.domain.operation import OperationKind
from foliot.wire.codec import CONTROL
from foliot.wire.filters import named_job
from foliot.wire.operations import OperationView
from foliot.wire.run_views import AttemptView
from foliot.wire.timing import Instant, check_instant

SLOWEST: Final = 0.001
FASTEST: Final = 10_000
USUAL_PACE: Final = 100.0
"""Dead letters a second."""


class LetterFilter(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Dead letters for which all of this holds. `handler` is a function's name, or `http`."""

    job: str | None = None
    error_class: Annotated[str, Meta(min_length=1, max_length=LONGEST_CLASS)] | None = None
    text: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    since: Instant | None = None
    until: Instant | None = None
    queue: Annotated[str, Meta(min_length=1, max_length=63)] | None = None
    handler: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class DiscardBody(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Either `runIds`, which is done at once, or a `filter` (`{}` is all), which makes an operation."""

    run_ids: Annotated[list[str], Meta(min_length=1, max_length=MOST_BY_ID)] | None = None
    filter: LetterFilter | None = None
    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)] | None = None
    dry_run: bool = False


class ReplayBody(DiscardBody, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """As for a discard; of a `filter`, at most `perSecond` are replayed, and `concurrency` are under way at once."""

    per_second: Annotated[float, Meta(ge=SLOWEST, le=FASTEST)] | None = None
    concurrency: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] | None = None


def selection_of(body: LetterFilter, within: str = "") -> Selection:
    """What is meant, or InvalidField; `within` is where the filter stands: `filter.`."""
    since, until = check_instant(body.since, f"{within}since"), check_instant(body.until, f"{within}until")
    if since is not None and until is not None and since > until:
        raise InvalidField(f"{within}since", "is later than until", "a range begins before it ends")
    for name in ("error_class", "text", "queue", "handler"):
        if "\0" in (getattr(body, name) or ""):
            raise InvalidField(f"{within}{_CAMEL[name]}", "contains a NUL character", "leave it out")
    group = None if body.handler is None else "http" if body.handler == "http" else f"fn:{body.handler}"
    job = None if body.job is None else named_job(body.job, f"{within}job")
    return Selection(job, body.error_class, body.text, since, until, body.queue, group)


_CAMEL: Final = dict(zip(LetterFilter.__struct_fields__, LetterFilter.__struct_encode_fields__, strict=True))


def runs_of(body: DiscardBody) -> list[int] | None:
    """The runs that are named, each once; none if there is a filter instead."""
    if (body.run_ids is None) == (body.filter is None):
        raise InvalidField("runIds", "needs a filter instead, and not beside it", "give either runIds or filter")
    if body.run_ids is None:
        return None
    options = {"name": "name", "dry_run": "dryRun", "per_second": "perSecond", "concurrency": "concurrency"}
    if given := [word for field, word in options.items() if getattr(body, field, None)]:
        raise InvalidField(given[0], "is for a filter: what is named by id is done at once", "leave it out")
    return list(dict.fromkeys(_run(place, text) for place, text in enumerate(body.run_ids)))


def _run(place: int, text: str) -> int:
    try:
        return decode("run", text)
    except InvalidField as error:
        raise InvalidField(f"runIds[{place}]", error.message, error.hint) from None


def sweep_of(body: DiscardBody) -> Sweep:
    """What is asked to be done with the dead letters of a filter."""
    if body.name is not None and CONTROL.search(body.name):
        raise InvalidField("name", "contains a control character", "take it out")
    arguments: dict[str, Any] = {"filter": msgspec.to_builtins(body.filter)}
    kind, pace, most = OperationKind.DISCARD, None, MOST_AT_ONCE
    if isinstance(body, ReplayBody):
        kind, pace, most = OperationKind.REPLAY, body.per_second or USUAL_PACE, body.concurrency or MOST_AT_ONCE
        arguments |= {"perSecond": pace, "concurrency": most}
    return Sweep(
        kind=kind,
        selection=selection_of(body.filter or LetterFilter(), "filter."),
        arguments=arguments,
        name=body.name or f"{kind.word} of dead letters",
        per_second=pace,
        concurrency=most,
    )


class LetterView(msgspec.Struct, kw_only=True, rename="camel"):
    """A run that has used its attempts and waits for somebody to decide."""

    run_id: str
    job_id: str | None
    handler: str
    queue: str
    priority: str
    scheduled_at: Instant
    created_at: Instant
    died_at: Instant
    attempts: int
    error_class: str | None
    error_message: str | None


class WholeLetter(LetterView, kw_only=True, rename="camel"):
    """A dead letter with all that is known about it; `executions` are its attempts, newest first, up to 500."""

    payload: msgspec.Raw
    executions: list[AttemptView]


class RefusedRun(msgspec.Struct, rename="camel"):
    run_id: str
    reason: str


class LettersDone(msgspec.Struct, kw_only=True, rename="camel"):
    """What was done at once, and what was refused; or, for a filter, the operation that goes on with it."""

    run_ids: list[str]
    refused: list[RefusedRun]
    operation: OperationView | None
