"""How an attempt that went on outside ended, as whoever was called says it."""

from datetime import timedelta
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.domain.duration import parse_duration
from foliot.domain.errorclass import LONGEST_NAME
from foliot.domain.errors import InvalidField
from foliot.domain.outcome import Answer, Failure, Returned, Snoozed
from foliot.domain.result import LARGEST_RESULT, is_small_json
from foliot.domain.retry import LONGEST_RETRY_AFTER
from foliot.wire.timing import Duration, Instant

LONGEST_SNOOZE: Final = timedelta(days=366)
USUAL_CLASS: Final = "Failed"


class CompletionBody(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """`failed` is tried again, `permanent` is not. `snoozed` comes back after `retryAfter`, and spends no attempt.

    `result` stands beside `succeeded`; `error`, and `errorClass` for rules about retries, beside the others.
    """

    outcome: Literal["succeeded", "failed", "permanent", "snoozed"]
    result: msgspec.Raw | UnsetType = UNSET
    error: Annotated[str, Meta(max_length=65_536)] | UnsetType = UNSET
    error_class: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)] | UnsetType = UNSET
    retry_after: Duration | UnsetType = UNSET


class CompletionView(msgspec.Struct, kw_only=True, rename="camel"):
    """How the attempt ended, and where that left its run."""

    run_id: str
    status: str
    finished_at: Instant
    run_status: str
    run_state: str


class SigningSecret(msgspec.Struct):
    """`whsec_…`: give it to the receivers of calls, and to nobody else."""

    secret: str


def answer_of(body: CompletionBody) -> Answer:
    """What the handler says; InvalidField names what does not go together."""
    if body.outcome == "succeeded":
        _refuse(body, "error", "error_class", "retry_after")
        return None if body.result is UNSET else _returned(bytes(body.result))
    _refuse(body, "result", *(["error_class"] if body.outcome == "snoozed" else []))
    error = "" if body.error is UNSET else body.error
    after = None if body.retry_after is UNSET else parse_duration(body.retry_after, "retryAfter")
    if body.outcome == "snoozed":
        return Snoozed(_snooze(after), error)
    if after is not None and after > LONGEST_RETRY_AFTER:
        raise InvalidField("retryAfter", "is longer than 24 hours", "for longer, say that it is snoozed")
    return Failure(
        error or "its handler said that it failed",
        permanent=body.outcome == "permanent",
        retry_after=after,
        classes=(USUAL_CLASS if body.error_class is UNSET else body.error_class,),
    )


def _refuse(body: CompletionBody, *names: str) -> None:
    for name in names:
        if getattr(body, name) is not UNSET:
            field = dict(zip(body.__struct_fields__, body.__struct_encode_fields__, strict=True))[name]
            raise InvalidField(field, f"does not go with {body.outcome!r}", "leave it out")


def _returned(result: bytes) -> Returned | None:
    if result == b"null":
        return None
    if not is_small_json(result):
        hint = f"at most {LARGEST_RESULT:,} bytes are kept: say where the rest is"
        raise InvalidField("result", "is too large", hint)
    return Returned(result)


def _snooze(after: timedelta | None) -> timedelta:
    if after is None:
        raise InvalidField("retryAfter", "is missing", 'when shall it come back? For example "PT10M"')
    if not timedelta() < after <= LONGEST_SNOOZE:
        raise InvalidField("retryAfter", f"is not within {LONGEST_SNOOZE.days} days", "come back sooner")
    return after
