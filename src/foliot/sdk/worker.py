"""The worker as an application writes it: functions with names, and when they run."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from foliot.domain.errors import InvalidField
from foliot.domain.spec import FUNCTION_NAME

Function = TypeVar("Function", bound=Callable[..., Any])


class Task:
    """A function that runs can name, and the schedule it declares for itself."""

    def __init__(self, name: str, function: Callable[..., Any], fields: dict[str, Any]) -> None:
        self.name = name
        self.function = function
        self.fields = fields

    @property
    def is_scheduled(self) -> bool:
        return bool(self.fields.keys() & {"cron_expression", "every"})

    @property
    def key(self) -> str:
        """The key of the job that the schedule is declared as."""
        return "task/" + re.sub(r"[^A-Za-z0-9._/-]", "-", self.name)[:58]


class Worker:
    """A set of functions to serve. `foliot worker module:worker` or `worker.run()` serves them."""

    def __init__(self, *, queues: tuple[str, ...] = ("default",), concurrency: int = 100) -> None:
        self.queues = queues
        self.concurrency = concurrency
        self.tasks: dict[str, Task] = {}

    def task(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        cron: str | None = None,
        every: str | float | None = None,
        **fields: Any,
    ) -> Any:
        """Register a function `(ctx, payload)`. With `cron` or `every` it also gets a job, kept up to date by key."""

        def register(function: Function) -> Function:
            chosen = name or function.__name__
            if not FUNCTION_NAME.fullmatch(chosen):
                raise InvalidField("name", f"{chosen!r} cannot name a function", "letters, digits, '.', '_' and '-'")
            if chosen in self.tasks:
                raise InvalidField("name", f"two functions are called {chosen!r}", "give one of them another name")
            schedule = {"cron_expression": cron, "every": every, **fields}
            self.tasks[chosen] = Task(chosen, function, {k: v for k, v in schedule.items() if v is not None})
            return function

        return register if function is None else register(function)

    def run(self) -> None:
        """Serve until interrupted, as `foliot worker` would."""
        from foliot.cli.serve_worker import serve_worker  # noqa: PLC0415 - the one late import: the cli wires processes

        serve_worker(self)
