"""`foliot api`, `foliot scheduler`, `foliot worker`."""

import importlib
import os
import sys
from typing import TYPE_CHECKING

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


@click.command()
@click.argument("app", required=False, metavar="[MODULE:WORKER]")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME[=WEIGHT]",
    callback=_weights,
    help="Serve this queue; with a weight, for that share while all have work (may be given several times).",
)
@click.option("--concurrency", type=click.IntRange(1, 10_000), help="Handlers at once in this process.")
@click.option("--url", help="Fetch work over HTTP from the API at this address; the key comes from FOLIOT_KEY.")
@click.option("--gateway", is_flag=True, help="Fetch work over HTTP, also where a database is known.")
@click.pass_obj
def worker(
    settings: Settings,
    app: str | None,
    queues: dict[str, int],
    concurrency: int | None,
    url: str | None,
    gateway: bool,
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
    serve_worker(served, settings, Reach(url, gateway))


def load_app(name: str) -> "Worker":
    """Import MODULE and find its Worker; the current folder is on the path, as for `python -m`."""
    from foliot.sdk.worker import Worker

    module, _, attribute = name.partition(":")
    attribute = attribute or "worker"
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise _bad(f"{name!r} does not look like module:worker")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - sys.path holds strings
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, but not what it imports: its own traceback says most
        raise _bad(f"there is no module {error.name!r} here") from None
    found = getattr(imported, attribute, None)
    if found is None:
        raise _bad(f"{module!r} has no {attribute!r}")
    if not isinstance(found, Worker):
        raise _bad(f"{name!r} is a {type(found).__name__}, not a foliot.Worker")
    return found


def _bad(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint="MODULE:WORKER")
