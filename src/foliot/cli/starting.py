"""`foliot run submit`, and what is said of a run that somebody has just started."""

from typing import Any, Final, cast

import click
import msgspec

from foliot.cli.job_options import given
from foliot.cli.naming import QUEUE
from foliot.cli.output import as_json, progress, record, say, wants_json
from foliot.domain.errors import FoliotError, InvalidField
from foliot.sdk.client import Foliot
from foliot.sdk.client.lasting import Run
from foliot.sdk.fields import NewRun

_AT_ONCE: Final = 1_000
"""Lines of a file that are handed in together."""
_OURS: Final = {"runAt": "at", "maxRetries": "max_retries"}
"""Names of the API that the command line has options for, as the SDK spells them."""


def waiting(command: Any) -> Any:
    """The options of whoever starts a run and may want to see its end."""
    seconds = click.option(
        "--timeout", type=float, default=300, show_default=True, metavar="SECONDS", help="Of the wait."
    )
    wait = click.option("--wait", is_flag=True, help="Wait for the run's end; exit 1 unless it completed.")
    return wait(seconds(command))


@click.command("submit")
@click.argument("handler", required=False)
@click.argument("arguments", nargs=-1, metavar="[ARGUMENTS]...")
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Many runs, one JSON object a line; - reads them here.",
)
@click.option("--payload", help="JSON that the handler receives.")
@click.option("--delay", metavar="DURATION", help="Not before so much time has passed, for example PT10M.")
@click.option("--at", "run_at", metavar="INSTANT", help="Not before this instant, for example 2026-12-24T18:00:00Z.")
@click.option("--priority", help="critical, high, normal, low or bulk.")
@click.option("--queue", type=QUEUE, help="Queue whose workers run it.")
@click.option(
    "--requires",
    multiple=True,
    metavar="LABEL",
    help="Only workers that carry this label run it (may be given several times).",
)
@click.option("--max-retries", type=int, help="How often to try again after a failure.")
@click.option("--idempotency-key", metavar="KEY", help="The same key submits once, whoever repeats it.")
@waiting
@wants_json
def submit(
    handler: str | None,
    arguments: tuple[str, ...],
    file: str | None,
    wait: bool,
    timeout: float,
    json: bool,
    **values: Any,
) -> None:
    """Run HANDLER once, without a job: an http(s) address, a function's name, or a command.

    Commands are written as for `foliot job create`: a whole path, or a name with ARGUMENTS, behind `--`.

    With --file each line is a run as the API takes it: {"handler": "send_receipt", "payload": {"order": 17}}. What
    stands on the command line holds for all lines that do not say otherwise. With an --idempotency-key the same file
    can be submitted again after a break, and nothing in it is twice.
    """
    values["at"] = values.pop("run_at")
    called: str | list[str] | None = handler
    if handler is not None and (arguments or handler.startswith("/")):
        called = [handler, *arguments]
    if file is not None:
        if wait:
            raise click.UsageError("--wait is for one run; `foliot run list` shows many")
        _submit_lines(file, {**given(values), **({} if called is None else {"handler": called})}, json=json)
        return
    if called is None:
        raise click.UsageError("name a HANDLER, or a --file of runs")
    tell(Foliot().submit(called, **given(values)), wait=wait, timeout=timeout, json=json)


def _submit_lines(file: str, usual: dict[str, Any], *, json: bool) -> None:
    """Hand in what stands in a file, and say how many that were."""
    key = usual.pop("idempotency_key", None)
    try:
        with click.open_file(file, "rb") as source:
            lines = [_run_of(number, line, usual) for number, line in enumerate(source, 1) if line.strip()]
    except OSError as error:
        raise FoliotError(f"{file} cannot be read: {error.strerror}", "is this the right path?") from None
    client, ids = Foliot(), list[str]()
    with progress(len(lines), "submitting") as advance:
        for start in range(0, len(lines), _AT_ONCE):
            part = lines[start : start + _AT_ONCE]
            ids += client.submit_many(part, idempotency_key=None if key is None else f"{key}-{start // _AT_ONCE}")
            advance(len(part))
    if json:
        as_json({"runIds": ids})
    else:
        say(f"{len(ids):,} {'run' if len(ids) == 1 else 'runs'} accepted; watch them with: foliot run list")


def _run_of(number: int, line: bytes, usual: dict[str, Any]) -> NewRun:
    try:
        run = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError as error:
        hint = 'write one object a line: {"handler": "send_receipt", "payload": {"order": 17}}'
        raise InvalidField(f"line {number}", f"is no run: {error}", hint) from None
    if "runAt" in run or "delay" in run:
        usual = {name: value for name, value in usual.items() if name not in {"at", "delay"}}
    merged = {**usual, **{_OURS.get(name, name): value for name, value in run.items()}}
    if "handler" not in merged:
        raise InvalidField(f"line {number}", "has no handler", "add one, or name a HANDLER on the command line for all")
    return cast("NewRun", merged)


def tell(started: Run, *, wait: bool, timeout: float, json: bool) -> None:
    """Say which run it is, and how it ended if that is waited for; exits with 1 if it has not completed then."""
    if wait:
        _see_through(started, timeout)
    if json:
        as_json(started.values)
    else:
        say(f"{started.id} {started.status}" + ("" if wait else f"; watch it with: foliot run get {started.id}"))
        told = {"error": started.values.get("errorMessage"), "result": started.values.get("result")} if wait else {}
        if said := {name: value for name, value in told.items() if value is not None}:
            record(said)
    if wait and started.status != "completed":
        raise click.exceptions.Exit(1)


def _see_through(started: Run, timeout: float) -> None:
    try:
        started.wait(timeout, check=False)
    except TimeoutError as error:
        raise FoliotError(str(error), f"look again with: foliot run get {started.id}") from None
    except KeyboardInterrupt:
        hint = f"look again with: foliot run get {started.id}, or foliot run cancel {started.id}"
        raise FoliotError(f"no longer waiting; {started.id} goes on", hint) from None
