"""Runs of a test, as a client would see them, and how each try of them went."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from foliot.domain.ids import encode
from foliot.domain.outcome import Ending, Outcome
from foliot.domain.spec import FunctionHandler, Spec
from foliot.domain.states import STATUS_OF
from foliot.sdk.errors import RunFailed
from foliot.sdk.records import RunRecord
from foliot.wire.codec import rfc3339

_UNENDED: Final = frozenset({Ending.SNOOZED, Ending.RELEASED})


class Attempt(msgspec.Struct, frozen=True):
    """One try: when it began and ended, how, and what the function raised, if it did."""

    number: int
    status: str
    started_at: datetime
    finished_at: datetime
    error: BaseException | None = None


class InlineRun(RunRecord):
    """A run of a test: the fields of any run, and `tries`, one after the other."""

    def __init__(self, number: int, spec: Spec, payload: bytes, name: str, job: int | None, due_at: datetime) -> None:
        handler = spec.handler
        self.number, self.job, self.name, self.spec, self.sent = number, job, name, spec, payload
        self.due = due_at
        self.tries: list[Attempt] = []
        self.checkpoint: bytes | None = None
        self.exception: BaseException | None = None
        """What the last try raised."""
        self.returned: Any = None
        """What the function returned, also if it is nothing that could be kept as `result`."""
        self.spent = 0
        """Attempts that count: those that ended by a snooze do not."""
        super().__init__(
            {
                "runId": encode("run", number),
                "jobId": None if job is None else encode("job", job),
                "status": "pending",
                "state": "scheduled",
                "handler": handler.name if isinstance(handler, FunctionHandler) else handler.group,
                "queue": spec.queue,
                "priority": spec.priority.name.lower(),
                "delivery": "atMostOnce" if spec.is_at_most_once else "atLeastOnce",
                "scheduledAt": rfc3339(due_at),
                "dueAt": rfc3339(due_at),
                "createdAt": rfc3339(due_at),
                "startedAt": None,
                "finishedAt": None,
                "attempts": 0,
                "errorMessage": None,
                "errorClass": None,
                "workerId": None,
                "waitingFor": None,
                "progress": None,
                "payload": msgspec.json.decode(payload),
            }
        )

    def check(self) -> "InlineRun":
        """Itself, if it completed; else RunFailed, from what the function raised."""
        if self.status != "completed":
            raise RunFailed(self) from self.exception
        return self

    def cancel(self) -> None:
        if not self.is_over:
            self.values |= {"status": "cancelled", "state": "cancelled"}

    def begin(self, now: datetime) -> None:
        self.values |= {"status": "running", "state": "running", "startedAt": rfc3339(now)}

    def settle(self, outcome: Outcome, began: datetime, clock: Callable[[], datetime]) -> None:
        """Write down how a try ended, and what follows."""
        now = clock()
        self.tries.append(Attempt(self.spent + 1, outcome.ending.word, began, now, self.exception))
        self.spent += outcome.ending not in _UNENDED
        status = STATUS_OF[outcome.state].value
        self.values |= {
            "status": status,
            "state": outcome.state.word,
            "attempts": self.spent,
            "errorMessage": outcome.error,
            "errorClass": outcome.error_class,
        }
        if outcome.result is not None:
            self.values["result"] = msgspec.json.decode(outcome.result)
        if outcome.delay is not None:
            self.due = now + outcome.delay
            self.values["dueAt"] = rfc3339(self.due)
        if self.is_over:
            self.values["finishedAt"] = rfc3339(now)
