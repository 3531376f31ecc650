"""What `foliot job create` and `foliot job edit` can say of a job, and what that means on the wire."""

from collections.abc import Iterable
from typing import Any

import click
import msgspec

from foliot.cli.naming import CALENDAR, QUEUE
from foliot.domain.job import Overlap
from foliot.domain.limits import HIGHEST

_WHEN = (
    "name",  # an H is hashed from it
    "cron_expression", "timezone", "dst", "every", "rrule", "when", "schedule_at", "ends_at", "max_runs",
    "calendar",
)  # fmt: skip
_LOSABLE = {
    "at": "schedule_at", "calendar": "calendar", "catch-up": "catch_up", "ends-at": "ends_at", "jitter": "jitter",
    "max-runs": "max_runs",
}  # fmt: skip
_NOTHING: Any = object()

losing = click.option(
    "--without",
    multiple=True,
    type=click.Choice([*_LOSABLE]),
    help="Take this away from the job.",
)


def payload_option(text: str | None) -> Any:
    return _NOTHING if text is None else json_option("--payload", text, '{"n": 1}')


def json_option(option: str, text: str, example: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        hint = f"try {option} '{example}', with quotes around the whole"
        raise click.BadParameter(f"not JSON: {error}\n  → {hint}", param_hint=option) from None


def dst_option(gap: str | None, fold: str | None) -> dict[str, str] | None:
    return {name: value for name, value in (("gap", gap), ("fold", fold)) if value is not None} or None


def catch_up_option(mode: str | None, window: str | None) -> dict[str, str] | None:
    return {name: value for name, value in (("mode", mode), ("window", window)) if value is not None} or None


def calendar_option(name: str | None, rule: str | None) -> str | dict[str, str] | None:
    if rule is None:
        return name
    if name is None:
        raise click.UsageError("--calendar-rule needs --calendar")
    return {"name": name, "rule": rule}


def concurrency_option(limit: int | None, path: str | None) -> dict[str, Any] | None:
    if limit is None and path is not None:
        raise click.UsageError("--concurrency-key needs --concurrency")
    return None if limit is None else {"limit": limit} if path is None else {"limit": limit, "key": path}


def definition(command: Any) -> Any:
    """The options that create and edit share."""
    options = [
        click.option("--payload", help="JSON that the handler receives."),
        click.option("--cron", "cron_expression", help='For example "0 9 * * MON-FRI".'),
        click.option("--timezone", help="IANA zone of the cron expression, for example Europe/Berlin."),
        click.option(
            "--gap", type=click.Choice(["end", "skip"]), help="A time of day that the clocks skip: run late, or not."
        ),
        click.option("--fold", type=click.Choice(["once", "twice"]), help="A time of day that comes twice."),
        click.option("--every", help="ISO 8601 duration or seconds, for example PT90S; or R5/START/PT90S."),
        click.option("--rrule", help='RFC 5545, for example "FREQ=MONTHLY;BYDAY=2TU;BYHOUR=9".'),
        click.option("--when", help='In plain words, for example "every weekday at 9:00".'),
        click.option("--at", "schedule_at", help="Instant of a one-time job, for example 2026-12-24T18:00:00Z."),
        click.option("--ends-at", help="No fire after this instant."),
        click.option(
            "--max-runs", type=click.IntRange(1, 1_000_000_000), help="How often a recurring job runs in all."
        ),
        click.option(
            "--catch-up",
            type=click.Choice(["all", "latest", "none"]),
            help="Which fire times are run that come up late.",
        ),
        click.option("--catch-up-window", metavar="DURATION", help="How late they may come up; usually PT1H."),
        click.option("--jitter", metavar="DURATION", help="Start at a place of its own so long after the fire time."),
        click.option("--calendar", type=CALENDAR, help="Run only when this calendar allows."),
        click.option(
            "--calendar-rule",
            type=click.Choice(["skip", "next", "previous", "nearest"]),
            help="Runs that the calendar does not allow: skip them, or move them.",
        ),
        click.option(
            "--depends-on",
            multiple=True,
            metavar="JOB[:WHEN]",
            help="A job, by id or key, that must have run before: its success, or `:done`, or `:failed`.",
        ),
        click.option("--priority", help="critical, high, normal, low or bulk."),
        click.option("--queue", type=QUEUE, help="Queue whose workers run it."),
        click.option(
            "--requires",
            multiple=True,
            metavar="LABEL",
            help="Only workers that carry this label run it (may be given several times; '' for any worker).",
        ),
        click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="May be given several times."),
        click.option("--max-retries", type=int, help="How often to try again after a failure."),
        click.option(
            "--retry", metavar="JSON", help="""Rules per kind of error: '[{"on": ["http:404"], "never": true}]'."""
        ),
        click.option("--timeout", "timeout_seconds", type=float, metavar="SECONDS", help="For each attempt."),
        click.option(
            "--delivery",
            type=click.Choice(["atLeastOnce", "atMostOnce"]),
            help="What a lost worker means: run it again, or never again.",
        ),
        click.option(
            "--on-disconnect",
            type=click.Choice(["finish", "stop"]),
            help="When its worker is cut off from the database: go on, or stop in time.",
        ),
        click.option(
            "--concurrency", type=click.IntRange(1, HIGHEST), metavar="N", help="At most so many of its runs at once."
        ),
        click.option(
            "--concurrency-key",
            metavar="PATH",
            help="So many of each value that is there, for example payload.account.",
        ),
        click.option(
            "--overlap",
            type=click.Choice([each.value for each in Overlap]),
            help="When a scheduled run from before is still there.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def given(values: dict[str, Any]) -> dict[str, Any]:
    """What was given on the command line, and nothing else."""
    labels = values.pop("labels", ())
    for label in labels:
        if "=" not in label:
            raise click.BadParameter(f"{label!r} is not NAME=VALUE", param_hint="--label")
    if required := values.pop("requires", ()):
        values["requires"] = [label for label in required if label]
    payload = payload_option(values.pop("payload", None))
    if (retry := values.pop("retry", None)) is not None:
        values["retry"] = json_option("--retry", retry, '[{"on": ["http:404"], "never": true}]')
    values["dst"] = dst_option(values.pop("gap", None), values.pop("fold", None))
    values["catch_up"] = catch_up_option(values.pop("catch_up", None), values.pop("catch_up_window", None))
    values["calendar"] = calendar_option(values.pop("calendar", None), values.pop("calendar_rule", None))
    values["concurrency"] = concurrency_option(values.pop("concurrency", None), values.pop("concurrency_key", None))
    values["depends_on"] = [_need(each) for each in values.pop("depends_on", ())] or None
    given = {name: value for name, value in values.items() if value is not None}
    if labels:
        given["labels"] = dict(label.split("=", 1) for label in labels)
    return given if payload is _NOTHING else {**given, "payload": payload}


def _need(text: str) -> dict[str, str]:
    job, _, when = text.partition(":")
    return {"job": job, "when": when or "success"}


def lost(without: Iterable[str], fields: dict[str, Any]) -> dict[str, None]:
    """What an edit takes away, besides the `fields` that it gives."""
    for option in without:
        if _LOSABLE[option] in fields:
            raise click.UsageError(f"--without {option} stands beside --{option}: say one of them")
    return dict.fromkeys(_LOSABLE[option] for option in without)


def timing_of(fields: dict[str, Any]) -> dict[str, Any]:
    """What of an edit decides when the job fires, as a preview wants it."""
    timing = {name: fields[name] for name in _WHEN if name in fields}
    dst = timing.pop("dst", {})
    if isinstance(calendar := timing.get("calendar"), dict):
        timing |= {"calendar": calendar["name"], "calendar_rule": calendar["rule"]}
    return {**timing, **dst}
