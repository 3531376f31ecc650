"""`foliot api`, `foliot scheduler`, `foliot worker`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foliot.domain.fairness import HEAVIEST, check_weight
from foliot.kit.settings import Settings

if TYPE_CHECKING:
    from foliot.sdk.worker import Worker


def _weights(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:  # noqa: ARG001 - click's signature
    """Of `reports` and `reports=3`."""
    queues = {}
    for value in values:
        name, has_weight, weight = value.partition("=")
        try:
            queues[name] = check_weight(int(weight)) if has_weight else 1
        except ValueError:
            name = ""
        if not name:
            raise click.BadParameter(f"{value!r}: write NAME or NAME=WEIGHT, with a weight from 1 to {HEAVIEST}")
    return queues


def _labels(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG001 - click's signature
    from foliot.domain.errors import InvalidField
    from foliot.domain.labels import labels_of

    try:
        return labels_of(values, "--label")
    except InvalidField as error:
        raise click.BadParameter(f"{error.message}: {error.hint}") from None


@click.command()
@click.pass_obj
def api(settings: Settings) -> None:
    """Serve the REST API. Any number may run."""
    from foliot.cli.serve_api import serve_api

    serve_api(settings)


@click.command()
@click.pass_obj
def scheduler(settings: Settings) -> None:
    """Fire schedules, release what falls due, take work back from dead workers. Any number may run."""
    from foliot.cli.serve_scheduler import serve_scheduler

    serve_scheduler(settings)


def check_processes(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Tell a typo now, not by a child that restarts for ever."""
    from foliot.cli.supervise import cores
    from foliot.domain.errors import InvalidField
    from foliot.domain.scaling import Bounds

    if text is not None:
        try:
            Bounds.parse(text, cores())
        except InvalidField as error:
            raise click.BadParameter(f"{error.message}: {error.hint}") from None
    return text


def commands_options(command: Any) -> Any:
    """The options of processes that may run commands."""
    commands = click.option(
        "--commands",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Run commands that this file allows; without it, none. Instead of FOLIOT_COMMANDS.",
    )
    same_user = click.option(
        "--commands-same-user",
        is_flag=True,
        help="Where commands cannot run as another user, run them as our own: they may do what we may.",
    )
    return commands(same_user(command))


def with_commands(settings: Settings, commands: Path | None, *, same_user: bool) -> Settings:
    """The settings with what the command line says of commands; processes that we start read the same."""
    if commands is not None:
        os.environ["FOLIOT_COMMANDS"] = str(commands.absolute())
    if same_user:
        os.environ["FOLIOT_COMMANDS_SAME_USER"] = "1"
    return settings._replace(
        commands=commands.absolute() if commands else settings.commands,
        commands_same_user=same_user or settings.commands_same_user,
    )


@click.command("serve")
@click.argument("app", required=False, metavar="[MODULE:WORKER]")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME[=WEIGHT]",
    callback=_weights,
    help="Serve this queue; with a weight, for that share while all have work (may be given several times).",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="LABEL",
    callback=_labels,
    help="Take runs as well that require this label (may be given several times). Instead of FOLIOT_LABELS.",
)
@click.option("--concurrency", type=click.IntRange(1, 100_000), help="Handlers at once in each process.")
@click.option(
    "--processes",
    metavar="N",
    callback=check_processes,
    help="A number, `auto` for one per core, or a range such as 1..8: more under a backlog, fewer when idle.",
)
@click.option("--url", help="Fetch work over HTTP from the API at this address; the key comes from FOLIOT_KEY.")
@click.option("--gateway", is_flag=True, help="Fetch work over HTTP, also where a database is known.")
@commands_options
@click.pass_obj
def worker(
    settings: Settings,
    app: str | None,
    queues: dict[str, int],
    labels: tuple[str, ...],
    concurrency: int | None,
    processes: str | None,
    url: str | None,
    gateway: bool,
    commands: Path | None,
    commands_same_user: bool,
) -> None:
    """Run handlers: HTTP targets, and the functions of MODULE:WORKER if given. Any number may run.

    Work comes from the database of FOLIOT_DATABASE_URL; without it, over HTTP if FOLIOT_URL and FOLIOT_KEY are set;
    without them, from the database of the `foliot up` in this folder. --url and --gateway choose HTTP in any case.
    """
    from foliot.cli.reaching import Reach
    from foliot.cli.serve_worker import serve_worker
    from foliot.sdk.worker import Worker

    served = Worker() if app is None else load_app(app)
    served.queues = queues or served.queues
    served.concurrency = concurrency or served.concurrency
    served.processes = processes or served.processes
    settings = settings._replace(labels=labels or settings.labels)
    serve_worker(served, with_commands(settings, commands, same_user=commands_same_user), app, Reach(url, gateway))


def load_app(name: str) -> "Worker":
    """The Worker that MODULE:WORKER names."""
    from foliot.domain.errors import InvalidField
    from foliot.sdk import apps

    try:
        return apps.load_app(name)
    except InvalidField as error:
        if error.field != "app":
            raise  # something within it, which says so itself
        raise click.BadParameter(error.message, param_hint="MODULE:WORKER") from None
