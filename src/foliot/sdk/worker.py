"""The worker as an application writes it: functions with names, and when they run."""

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, Unpack, get_args, overload

import msgspec
import structlog

from foliot.domain.errors import FoliotError, InvalidField
from foliot.domain.fairness import weigh
from foliot.domain.labels import labels_of
from foliot.domain.spec import FUNCTION_NAME
from foliot.sdk.calls import put_job
from foliot.sdk.fields import JobFields
from foliot.wire.calendars import UnknownCalendars
from foliot.wire.jobs import JobBody, draft_of

if TYPE_CHECKING:
    from foliot.sdk.client import Foliot
    from foliot.sdk.records import Job

Function = TypeVar("Function", bound=Callable[..., Any])
Retired = Literal["warn", "pause", "cancel"]

log = structlog.get_logger("worker")

_LONGEST_KEY = 63


class Task:
    """A function that runs can name, and the schedule it declares for itself."""

    def __init__(
        self, name: str, function: Callable[..., Any], fields: dict[str, Any], *, is_isolated: bool = False
    ) -> None:
        self.name = name
        self.function = function
        self.fields = fields
        self.is_isolated = is_isolated
        """Each attempt runs in a process of its own."""

    @property
    def is_scheduled(self) -> bool:
        return bool(self.fields.keys() & {"cron_expression", "every", "rrule", "when"})

    @property
    def key(self) -> str:
        """The key of the job that the schedule is declared as; its own for every name, however long."""
        key = f"task/{self.name}"
        if len(key) <= _LONGEST_KEY:
            return key
        return f"{key[: _LONGEST_KEY - 17]}-{hashlib.sha256(self.name.encode()).hexdigest()[:16]}"


class Worker:
    """A set of functions to serve. `foliot worker module:worker` or `worker.run()` serves them.

    `queues` are names, or names with weights: of `{"fast": 3, "bulk": 1}` the first gets three runs for each one of the
    second while both have work, and an empty one leaves its share to the others. With `labels` it takes runs, too, that
    require some of them. `concurrency` counts handlers at once in each process; `processes` is a number, "auto" for one
    per core, or a range such as "1..8".

    A worker with a `name` knows again which schedules it has declared: of those that its functions do not declare any
    more, and that no live worker serves, it warns; with `retired="pause"` or `"cancel"` it does that instead.
    """

    may_serve: ClassVar[bool] = True
    """False in a process that was started to run one function: it imports the application, and must not serve it."""

    def __init__(
        self,
        *,
        name: str | None = None,
        queues: Mapping[str, int] | Iterable[str] = ("default",),
        labels: Iterable[str] = (),
        concurrency: int = 100,
        processes: int | str = 1,
        retired: Retired = "warn",
    ) -> None:
        if name is not None and not FUNCTION_NAME.fullmatch(name):
            raise InvalidField("name", f"{name!r} cannot name a worker", "letters, digits, '.', '_' and '-'")
        if retired not in get_args(Retired):
            raise InvalidField("retired", f"there is no {retired!r}", f"one of {', '.join(get_args(Retired))}")
        if retired != "warn" and name is None:
            raise InvalidField("retired", "needs a name", "pass name= too: by it the worker knows its own jobs again")
        self.name = name
        self.queues = weigh(queues)
        self.labels = labels_of(labels, "labels")
        self.concurrency = concurrency
        self.processes = processes
        self.retired = retired
        self.tasks: dict[str, Task] = {}
        self.reference: str | None = None
        """`module:worker`, by which another process finds it; set by whoever loaded it by that name."""

    @overload
    def task(
        self,
        function: Function,
        *,
        name: str | None = None,
        cron: str | None = None,
        isolation: Literal["process"] | None = None,
        **fields: Unpack[JobFields],
    ) -> Function: ...

    @overload
    def task(
        self,
        function: None = None,
        *,
        name: str | None = None,
        cron: str | None = None,
        isolation: Literal["process"] | None = None,
        **fields: Unpack[JobFields],
    ) -> Callable[[Function], Function]: ...

    def task(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        cron: str | None = None,
        isolation: Literal["process"] | None = None,
        **fields: Unpack[JobFields],
    ) -> Any:
        """Register a function `(ctx, payload)`. With `cron`, `every`, `rrule` or `when` it also gets a job.

        With `isolation="process"` each attempt has a process of its own, which is killed, with everything it started,
        when its time is up, when the worker must give it back, or when the worker is stopped or dies.
        The job has a key of its own and is kept up to date. What is wrong with a schedule is told here, not when the
        worker starts.
        """

        def register(function: Function) -> Function:
            chosen = str(name or getattr(function, "__name__", ""))
            if not FUNCTION_NAME.fullmatch(chosen):
                hint = "pass name=: letters, digits, '.', '_' and '-'"
                raise InvalidField("name", f"{chosen!r} cannot name a function", hint)
            if chosen in self.tasks:
                raise InvalidField("name", f"two functions are called {chosen!r}", "give one of them another name")
            if isolation not in {None, "process"}:
                hint = 'use isolation="process", or leave it out'
                raise InvalidField("isolation", f"there is no {isolation!r}", hint)
            _check_signature(chosen, function)
            given = {key: value for key, value in ({"cron_expression": cron} | {**fields}).items() if value is not None}
            task = Task(chosen, function, given, is_isolated=isolation == "process")
            _check_schedule(task)
            self.tasks[chosen] = task
            return function

        return register if function is None else register(function)

    def declare(self, client: "Foliot | None" = None) -> "list[Job]":
        """Make the jobs of the functions that declare a schedule, or bring them up to date; their jobs.

        A worker does this when it starts. Call it in a step of a deployment to be told at once what is refused.
        """
        from foliot.sdk.client import Foliot  # noqa: PLC0415 - an application that only serves needs no HTTP client
        from foliot.sdk.client.declaring import declare  # noqa: PLC0415 - as above

        return declare(client or Foliot(), self)

    def run(self) -> None:
        """Serve until interrupted, as `foliot worker` would."""
        if not self.may_serve:
            raise FoliotError(
                "worker.run() was called while the module was imported to run one of its functions",
                'call it under `if __name__ == "__main__":`',
            )
        from foliot.cli.serve_worker import serve_worker  # noqa: PLC0415 - the one late import: the cli wires processes

        serve_worker(self)


def _check_signature(name: str, function: Callable[..., Any]) -> None:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise InvalidField(
            "function", f"{name!r} cannot be called with (ctx, payload)", "give it two parameters"
        ) from None
    except ValueError:  # built in: it does not tell
        return


def _check_schedule(task: Task) -> None:
    if not task.is_scheduled:
        if task.fields:
            unused = [*task.fields]
            log.warning(
                "options without cron, every, rrule or when: pass them to submit", function=task.name, unused=unused
            )
        return
    body = put_job(task.key, task.name, task.name, task.fields).body
    try:
        # Whose it will be is not known here, nor where its `H` will lie, nor whether there is such a calendar.
        with suppress(UnknownCalendars):
            draft_of(msgspec.json.decode(body or b"", type=JobBody), tenant=0)
    except msgspec.ValidationError as error:
        raise InvalidField("task", f"{task.name!r} has a bad option: {error}", "see /docs for a job's fields") from None
