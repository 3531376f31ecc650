"""`foliot run submit`, and what is said of a run that somebody has just started."""

from typing import Any

import click

from foliot.cli.job_options import given
from foliot.cli.naming import QUEUE
from foliot.cli.output import as_json, record, say, wants_json
from foliot.domain.errors import FoliotError
from foliot.sdk.client import Foliot
from foliot.sdk.client.lasting import Run


def waiting(command: Any) -> Any:
    """The options of whoever starts a run and may want to see its end."""
    seconds = click.option(
        "--timeout", type=float, default=300, show_default=True, metavar="SECONDS", help="Of the wait."
    )
    wait = click.option("--wait", is_flag=True, help="Wait for the run's end; exit 1 unless it completed.")
    return wait(seconds(command))


@click.command("submit")
@click.argument("handler")
@click.argument("arguments", nargs=-1, metavar="[ARGUMENTS]...")
@click.option("--payload", help="JSON that the handler receives.")
@click.option("--delay", metavar="DURATION", help="Not before so much time has passed, for example PT10M.")
@click.option("--at", "run_at", metavar="INSTANT", help="Not before this instant, for example 2026-12-24T18:00:00Z.")
@click.option("--priority", help="critical, high, normal, low or bulk.")
@click.option("--queue", type=QUEUE, help="Queue whose workers run it.")
@click.option("--max-retries", type=int, help="How often to try again after a failure.")
@click.option("--idempotency-key", metavar="KEY", help="The same key submits once, whoever repeats it.")
@waiting
@wants_json
def submit(handler: str, arguments: tuple[str, ...], wait: bool, timeout: float, json: bool, **values: Any) -> None:
    """Run HANDLER once, without a job: an http(s) address, a function's name, or a command.

    Commands are written as for `foliot job create`: a whole path, or a name with ARGUMENTS, behind `--`.
    """
    values["at"] = values.pop("run_at")
    is_command = arguments or handler.startswith("/")
    started = Foliot().submit([handler, *arguments] if is_command else handler, **given(values))
    tell(started, wait=wait, timeout=timeout, json=json)


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
