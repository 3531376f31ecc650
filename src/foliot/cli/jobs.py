"""`foliot job …`: create, look at and steer jobs through the API."""

from typing import Any

import click
import msgspec

from foliot.cli.ledger import occurrences
from foliot.cli.operations import backfill
from foliot.cli.output import Column, as_json, instant, record, say, table, wants_json
from foliot.cli.schedules import show
from foliot.domain.errors import FoliotError
from foliot.domain.job import Overlap
from foliot.domain.limits import HIGHEST
from foliot.sdk.client import Foliot

_COLUMNS = (
    Column("jobId", "JOB"),
    Column("name", "NAME", shrinks=True),
    Column("status", "STATUS"),
    Column("scheduleType", "TYPE"),
    Column("nextRunAt", "NEXT RUN (UTC)"),
    Column("lastStatus", "LAST RUN", optional=True),
)
_WHEN = (
    "name",  # an H is hashed from it
    "cron_expression", "timezone", "dst", "every", "rrule", "when", "schedule_at", "ends_at", "max_runs",
)  # fmt: skip
_NOTHING: Any = object()


@click.group()
def job() -> None:
    """Definitions of what to run, and when."""


job.add_command(backfill)


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
        click.option("--calendar", help="Run only when this calendar allows."),
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
        click.option("--queue", help="Queue whose workers run it."),
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


def _fields(values: dict[str, Any]) -> dict[str, Any]:
    """What was given on the command line, and nothing else."""
    labels = values.pop("labels", ())
    for label in labels:
        if "=" not in label:
            raise click.BadParameter(f"{label!r} is not NAME=VALUE", param_hint="--label")
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


def _timing(fields: dict[str, Any]) -> dict[str, Any]:
    """What of an edit decides when the job fires, as a preview wants it."""
    timing = {name: fields[name] for name in _WHEN if name in fields}
    dst = timing.pop("dst", {})
    return {**timing, **dst}


@job.command("create")
@click.argument("name")
@click.argument("handler")
@click.argument("arguments", nargs=-1, metavar="[ARGUMENTS]...")
@definition
@click.option("--key", help="Your own unique name for it; creating the same key twice is refused.")
@wants_json
def create(name: str, handler: str, arguments: tuple[str, ...], json: bool, **values: Any) -> None:
    """Create a job NAME that calls HANDLER: an http(s) address, a function's name, or a command.

    A whole path is a command, and so is a name with ARGUMENTS. Options come before it, and `--` between:
    `foliot job create tidy --every PT1H -- /usr/local/bin/tidy --all`.
    """
    is_command = arguments or handler.startswith("/")
    made = Foliot().create_job(name, [handler, *arguments] if is_command else handler, **_fields(values))
    if json:
        as_json(made.values)
    else:
        following = made.next_run_at
        say(f"created {made.id} ({made.schedule_type})" + (f", next run {instant(following)} UTC" if following else ""))
        if made.schedule_type == "on_demand":
            say(f"run it with: foliot job run {made.id}")


@job.command("list")
@click.option("--status", help="pending, running, completed, failed, cancelled or paused.")
@click.option("--name", help="Only jobs of exactly this name.")
@click.option("--label", metavar="NAME=VALUE", help="Only jobs with this label.")
@click.option(
    "--type", "schedule_type", type=click.Choice(["one_time", "recurring", "on_demand"]), help="Only jobs that run so."
)
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="At most so many.")
@wants_json
def list_jobs(json: bool, **query: Any) -> None:
    """List jobs, newest first."""
    found = Foliot().list_jobs(**query)
    if json:
        as_json([each.values for each in found])
        return
    rows = [{**each.values, "lastStatus": (each.last_run or {}).get("status")} for each in found]
    filtered = any(value is not None for name, value in query.items() if name != "limit")
    first = "no jobs yet: foliot job create hello https://example.com --every PT1M"
    table(rows, _COLUMNS, empty="no such jobs" if filtered else first)
    if found.next_cursor:
        say(f"… the newest {len(rows)}; --limit shows up to 500")


@job.command("get")
@click.argument("job_id", metavar="JOB")
@wants_json
def get(job_id: str, json: bool) -> None:
    """Show a job."""
    _show(Foliot().get_job(job_id).values, json=json)


@job.command("edit")
@click.argument("job_id", metavar="JOB")
@click.option("--name", help="Another name.")
@click.option("--handler", help="Another address or function.")
@click.option("--argv", metavar="WORD", multiple=True, help="A command instead: its program, then each argument.")
@definition
@click.option("--if-version", type=int, metavar="N", help="Only if the job is still at this version (`job get`).")
@click.option("--dry-run", is_flag=True, help="Change nothing: show which of the next fires would come and go.")
@wants_json
def edit(job_id: str, json: bool, dry_run: bool, if_version: int | None, argv: tuple[str, ...], **values: Any) -> None:
    """Change some fields of a job; instants from now on follow the new definition."""
    if argv and values["handler"] is not None:
        raise click.UsageError("--argv stands beside --handler: a job has one of them")
    fields = _fields({**values, "handler": list(argv) or values["handler"]})
    if not fields:
        raise click.UsageError("say what to change, for example --cron '0 9 * * *'")
    if dry_run:
        show(Foliot().preview(job_id, **_timing(fields)), json=json)
        return
    _show(Foliot().change_job(job_id, if_version=if_version, **fields).values, json=json)


@job.command("run")
@click.argument("job_id", metavar="JOB")
@click.option("--payload", help="JSON instead of the job's own payload.")
@click.option("--priority", help="Instead of the job's own.")
@click.option("--wait", is_flag=True, help="Wait for the run's end; exit 1 unless it completed.")
@click.option("--timeout", type=float, default=300, show_default=True, metavar="SECONDS", help="Of the wait.")
@wants_json
def run(job_id: str, payload: str | None, priority: str | None, wait: bool, timeout: float, json: bool) -> None:
    """Run a job now, besides its schedule."""
    started = Foliot().run_job(job_id, **_fields({"payload": payload, "priority": priority}))
    if wait:
        try:
            started.wait(timeout)
        except TimeoutError as error:
            raise FoliotError(str(error), f"look again with: foliot run get {started.id}") from None
    if json:
        as_json(started.values)
    else:
        say(f"{started.id} {started.status}" + ("" if wait else f"; watch it with: foliot run get {started.id}"))
        if wait and started.error_message:
            record({"error": started.error_message})
    if wait and started.status != "completed":
        raise click.exceptions.Exit(1)


@job.command("pause")
@click.argument("job_id", metavar="JOB")
@wants_json
def pause(job_id: str, json: bool) -> None:
    """Hold a job until it is resumed: nothing of it starts from holdsBy on; what runs goes on."""
    _show(Foliot().pause_job(job_id).values, json=json)


@job.command("resume")
@click.argument("job_id", metavar="JOB")
@wants_json
def resume(job_id: str, json: bool) -> None:
    """Let a paused job go on."""
    _show(Foliot().resume_job(job_id).values, json=json)


@job.command("delete")
@click.argument("job_id", metavar="JOB")
@click.option("--purge", is_flag=True, help="Erase it with its history, once nothing of it goes on any more.")
@wants_json
def delete(job_id: str, purge: bool, json: bool) -> None:
    """Cancel a job and its runs, those that run are asked to stop; it stays readable with its history."""
    _show(Foliot().delete_job(job_id, purge=purge).values, json=json)


def _show(values: dict[str, Any], *, json: bool) -> None:
    if json:
        as_json(values)
    else:
        last = values["lastRun"]
        summary = last and f"{last['runId']} {last['status']}, {instant(last['finishedAt'])} UTC"
        record({**values, "lastRun": summary})


job.add_command(occurrences)
