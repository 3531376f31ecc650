"""Runs on the wire: work handed in without a definition, or by hand for a job."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from foliot.domain.duration import parse_duration
from foliot.domain.errors import InvalidField
from foliot.domain.spec import CommandHandler, ContainerHandler, FunctionHandler, Handler, HttpHandler, Spec
from foliot.wire.handlers import handler_of
from foliot.wire.jobs import Policy, spec_of
from foliot.wire.timing import Duration, Instant, check_instant

LONGEST_DELAY: Final = timedelta(days=36_500)
REMEMBERED: Final = 4_096
"""Policies whose specs are known without working them out again."""


class RunBody(Policy, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One ad-hoc run. With neither `runAt` nor `delay` it starts now."""

    run_at: Instant | None = None
    delay: Duration | None = None


class RunBatch(msgspec.Struct, forbid_unknown_fields=True):
    """Up to 10,000 runs, accepted all or none."""

    runs: Annotated[list[RunBody], Meta(min_length=1, max_length=10_000)]


class RunByHand(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A run of a job besides its schedule; what is left out is taken from the job."""

    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    priority: str | int | None = None
    run_at: Instant | None = None
    delay: Duration | None = None


def start_of(body: RunBody | RunByHand) -> tuple[datetime | None, timedelta | None]:
    """When a run shall start: at an instant, after a while, or (neither) now."""
    if body.run_at is not None and body.delay is not None:
        raise InvalidField("delay", "stands beside runAt", "a run starts at one time: take one of them out")
    delay = None if body.delay is None else parse_duration(body.delay, "delay")
    if delay is not None and delay > LONGEST_DELAY:
        raise InvalidField("delay", f"is longer than {LONGEST_DELAY.days:,} days", "start it sooner")
    return check_instant(body.run_at, "runAt"), delay


def spec_and_target(body: RunBody) -> tuple[Spec, bytes | None]:
    """What varies per run (address, headers, words) travels in the run, so that a million addresses need one spec."""
    handler = handler_of(body.handler)
    match handler:
        case FunctionHandler():
            return _spec(body, handler), None
        case HttpHandler(url=url, method=method, headers=headers):
            target: dict[str, Any] = {"url": url} | ({"headers": headers} if headers else {})
            return _spec(body, HttpHandler(method=method)), msgspec.json.encode(target)
        case CommandHandler(argv=argv):
            return _spec(body, CommandHandler()), msgspec.json.encode({"argv": argv})
        case ContainerHandler(image=image, args=args, env=env, resources=resources):
            target = {"image": image, "args": args, "env": env}
            return _spec(body, ContainerHandler(resources=resources)), msgspec.json.encode(target)


def _spec(body: RunBody, handler: Handler) -> Spec:
    """What the body says besides handler, payload and time. A process sees few of these, each again and again."""
    policy = msgspec.structs.replace(body, handler=handler, payload=msgspec.UNSET, run_at=None, delay=None)
    return _remembered(msgspec.json.encode(policy))


@lru_cache(REMEMBERED)
def _remembered(policy: bytes) -> Spec:
    body = msgspec.json.decode(policy, type=RunBody)
    handler = body.handler
    return spec_of(body, handler=None if isinstance(handler, str) else handler)
