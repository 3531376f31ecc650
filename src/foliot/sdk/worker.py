"""The worker as an application writes it: functions with names, and when they run."""

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import structlog

from foliot.domain.errors import InvalidField
from foliot.domain.fairness import weigh
from foliot.domain.spec import FUNCTION_NAME
from foliot.sdk.calls import put_job
from foliot.wire.calendars import UnknownCalendars
from foliot.wire.jobs import JobBody, draft_of

Function = TypeVar("Function", bound=Callable[..., Any])

log = structlog.get_logger("worker")

_LONGEST_KEY = 63


class Task:
    """A function that runs can name, and the schedule it declares for itself."""

    def __init__(self, name: str, function: Callable[..., Any], fields: dict[str, Any]) -> None:
        self.name = name
        self.function = function
        self.fields = fields

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
    second while both have work, and an empty one leaves its share to the others.
    """

    def __init__(self, *, queues: Mapping[str, int] | Iterable[str] = ("default",), concurrency: int = 100) -> None:
        self.queues = weigh(queues)
        self.concurrency = concurrency
        self.tasks: dict[str, Task] = {}

    def task(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        cron: str | None = None,
        every: Any = None,
        rrule: str | None = None,
        when: str | None = None,
        **fields: Any,
    ) -> Any:
        """Register a function `(ctx, payload)`. With `cron`, `every`, `rrule` or `when` it also gets a job.

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
            _check_signature(chosen, function)
            schedule = {"cron_expression": cron, "every": every, "rrule": rrule, "when": when, **fields}
            task = Task(chosen, function, {k: v for k, v in schedule.items() if v is not None})
            _check_schedule(task)
            self.tasks[chosen] = task
            return function

        return register if function is None else register(function)

    def run(self) -> None:
        """Serve until interrupted, as `foliot worker` would."""
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
