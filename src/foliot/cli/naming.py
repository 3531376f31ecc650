"""What people name on the command line (jobs, runs, workers …), and what their shell offers when they press Tab."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from foliot.domain.errors import FoliotError
from foliot.sdk import ApiError
from foliot.sdk.client import Foliot

PATIENCE: Final = 1.0
"""Seconds that a shell waits for names; nobody who types waits longer."""
_MOST: Final = 200
_MISSING: Final = 404

Offer = tuple[str, str | None]
"""A word, and what it stands for: some shells show it beside."""
Ask = Callable[[Foliot], Iterable[Offer]]


class Name(click.ParamType[str]):
    """Text whose completions the API knows. Where it does not answer in time, there are none, and no noise."""

    name = "text"

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's signature
        try:
            offers = list(self._ask(Foliot(timeout=PATIENCE, max_retries=0)))
        except Exception:  # noqa: BLE001 - a half-typed line is no place for errors
            return []
        return [CompletionItem(word, help=help_) for word, help_ in offers if word.startswith(incomplete)]


class JobName(Name):
    """A job by its id, or by its key: what does not look like an id is asked for."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002 - as above
        if value.startswith("job_") or (ctx is not None and ctx.resilient_parsing):
            return value
        try:
            return Foliot().get_job_by_key(value).id
        except ApiError as error:
            if error.status != _MISSING:
                raise
            hint = "name it by its id or its key: `foliot job list` and `foliot job get` show them"
            raise FoliotError(f"there is no job {value!r}", hint) from None


def _jobs(client: Foliot) -> Iterable[Offer]:
    for job in client.list_jobs(limit=_MOST):
        if job.status != "cancelled":
            yield job.id, job.name
            if job.key:
                yield job.key, job.id


def _runs(client: Foliot) -> Iterable[Offer]:
    return ((run.id, f"{run.values['handler']} {run.values['status']}") for run in client.list_runs(limit=_MOST))


def _dead(client: Foliot) -> Iterable[Offer]:
    return ((each["runId"], each["errorClass"]) for each in client.dead_letters(limit=_MOST))


def _operations(client: Foliot) -> Iterable[Offer]:
    return ((each.id, f"{each.values['name']} {each.values['status']}") for each in client.operations(limit=_MOST))


def _workers(client: Foliot) -> Iterable[Offer]:
    return ((each.values["workerId"], each.values["name"]) for each in client.workers(limit=_MOST, state="live"))


def _queues(client: Foliot) -> Iterable[Offer]:
    return ((each.values["name"], None) for each in client.queues(limit=_MOST))


def _calendars(client: Foliot) -> Iterable[Offer]:
    return ((each.values["name"], each.values["timezone"]) for each in client.list_calendars(limit=_MOST))


def _keys(client: Foliot) -> Iterable[Offer]:
    return ((each.values["keyId"], each.values["name"]) for each in client.keys(limit=_MOST, status="active"))


def _tenants(client: Foliot) -> Iterable[Offer]:
    return ((each.values["tenant"], None) for each in client.tenants(limit=_MOST))


JOB: Final = JobName(_jobs)
RUN: Final = Name(_runs)
DEAD: Final = Name(_dead)
OPERATION: Final = Name(_operations)
WORKER: Final = Name(_workers)
QUEUE: Final = Name(_queues)
CALENDAR: Final = Name(_calendars)
KEY: Final = Name(_keys)
TENANT: Final = Name(_tenants)

job_argument = click.argument("job_id", metavar="JOB", type=JOB)
run_argument = click.argument("run_id", metavar="RUN", type=RUN)
operation_argument = click.argument("operation_id", metavar="OPERATION", type=OPERATION)
