"""Retries on the wire: how long to wait, and what errors of which kinds are worth trying again."""

from typing import Annotated

import msgspec
from msgspec import Meta

from foliot.domain.duration import format_duration, parse_duration
from foliot.domain.errorclass import LONGEST_NAME, MOST_NAMES, MOST_RULES, RetryRule
from foliot.domain.errors import InvalidField
from foliot.domain.retry import MOST_RETRIES, Backoff
from foliot.wire.timing import Duration


class BackoffBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    initial: Duration = "PT1S"
    factor: float = 2.0
    max: Duration = "PT10M"


class RetryRuleBody(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """What follows errors that `on` names: exceptions by name, `http:503`, `http:5xx`, `timeout`."""

    on: Annotated[list[Annotated[str, Meta(max_length=LONGEST_NAME)]], Meta(min_length=1, max_length=MOST_NAMES)]
    never: bool = False
    max_retries: Annotated[int, Meta(ge=0, le=MOST_RETRIES)] | None = None
    backoff: BackoffBody | None = None


RetryRules = Annotated[list[RetryRuleBody], Meta(max_length=MOST_RULES)]
"""The first that names an error decides."""


def backoff_of(body: BackoffBody) -> Backoff:
    initial, longest = parse_duration(body.initial, "backoff.initial"), parse_duration(body.max, "backoff.max")
    return Backoff(initial, body.factor, longest)


def backoff_body(backoff: Backoff) -> BackoffBody:
    return BackoffBody(format_duration(backoff.initial), backoff.factor, format_duration(backoff.max))


def rules_of(bodies: list[RetryRuleBody]) -> tuple[RetryRule, ...]:
    """The rules, checked; InvalidField names the one that is wrong: `retry[1].on[0]`."""
    rules = []
    for place, body in enumerate(bodies):
        try:
            backoff = None if body.backoff is None else backoff_of(body.backoff)
            rules.append(RetryRule(tuple(body.on), body.never, body.max_retries, backoff))
        except InvalidField as error:
            raise error.within(f"retry[{place}]") from None
    return tuple(rules)


def rule_bodies(rules: tuple[RetryRule, ...]) -> list[RetryRuleBody]:
    """The rules as their owner might have written them."""
    return [
        RetryRuleBody(
            on=list(rule.on),
            never=rule.never,
            max_retries=rule.max_retries,
            backoff=None if rule.backoff is None else backoff_body(rule.backoff),
        )
        for rule in rules
    ]
