"""What is known about one call, one run, one job, gathered from all records."""

from typing import Any

import msgspec

from chaos.oracle import MICRO, Definition, seconds
from chaos.records import Effect, Operation, Outcome
from chaos.timeline import Timeline

_NOTHING: list[Any] = []


class Call(msgspec.Struct, eq=False):
    """One thing that a client wanted: all repetitions of one idempotency key, or one call without."""

    operations: list[Operation]

    @property
    def first(self) -> Operation:
        return self.operations[0]

    @property
    def answered(self) -> Operation | None:
        return next((each for each in self.operations if each.outcome is Outcome.OK), None)

    @property
    def unsure(self) -> bool:
        """Nobody knows whether it happened."""
        return self.answered is None and any(each.outcome is Outcome.UNKNOWN for each in self.operations)

    @property
    def refused(self) -> bool:
        """It has not happened, for certain."""
        return all(each.outcome is Outcome.FAIL for each in self.operations)


class Submission(msgspec.Struct, frozen=True):
    """How an acknowledged run was handed in."""

    operation: Operation
    body: dict[str, Any]
    digest: str | None
    """None if the run takes its job's payload."""
    not_before: float
    due_by: float
    """When its time had come at the latest, whichever of the repetitions of the call was carried out."""
    since: float
    """When it was asked for the first time: a repetition may have been given the answer to that."""


class Run:
    """One run: what the ledger saw, what the product says, and who asked for it."""

    __slots__ = ("attempts", "beats", "ends", "id", "job", "listed", "rejected", "row", "starts", "submission")

    def __init__(self, name: str) -> None:
        self.id = name
        self.starts: list[Effect] = []
        self.ends: list[Effect] = []
        self.beats: list[Effect] = _NOTHING
        self.rejected: list[Effect] = _NOTHING
        self.row: dict[str, Any] | None = None
        self.attempts: list[dict[str, Any]] = _NOTHING
        self.listed: list[str] = _NOTHING
        """Tenants under which the dump lists it, or one of its attempts: once per run row."""
        self.submission: Submission | None = None
        self.job: str | None = None

    @property
    def known(self) -> bool:
        return self.row is not None or self.submission is not None

    @property
    def status(self) -> str | None:
        return None if self.row is None else self.row["status"]

    @property
    def scheduled(self) -> float | None:
        """The instant that it is labelled with."""
        if self.row is not None:
            return seconds(self.row["scheduledAt"])
        return next((each.scheduled_at for each in self.starts), None)

    @property
    def instant(self) -> int | None:
        at = self.scheduled
        return None if at is None else round(at * MICRO)

    @property
    def due(self) -> float | None:
        """When its first attempt may begin; None if that is not known any more: a retry has a time of its own."""
        row, tried = self.row, max(len(self.attempts), len(self.starts))
        if row is None or tried > 1 or (tried and row["status"] != "completed"):
            return None
        return seconds(row["dueAt"])

    def moment(self, name: str) -> float | None:
        """One of the product's times of this run."""
        written = None if self.row is None else self.row.get(name)
        return None if written is None else seconds(written)

    def attempt_of(self, fence: int) -> dict[str, Any] | None:
        return next((each for each in self.attempts if each["fence"] == fence), None)


class Job:
    """One job: its owner, everything that was done to it, and all its runs."""

    __slots__ = (
        "_bodies",
        "backfilled",
        "backfills",
        "by_hand",
        "id",
        "ledger",
        "missed",
        "operations",
        "row",
        "runs",
        "tenant",
        "timeline",
        "unsure_by_hand",
    )

    def __init__(self, name: str, tenant: str) -> None:
        self.id = name
        self.tenant = tenant
        self.operations: list[Operation] = []
        self.row: dict[str, Any] | None = None
        self.runs: list[Run] = []
        self.by_hand: set[str] = set()
        """Runs that are none of its schedule's own, those of back-fills among them."""
        self.backfills: dict[str, list[str]] = {}
        """The runs that each of its back-fills made, in this order."""
        self.backfilled: set[str] = set()
        self.unsure_by_hand: list[Operation] = []
        self.missed: list[tuple[int, int]] = []
        self.ledger: list[dict[str, Any]] = _NOTHING
        """What the product says of each of its instants."""
        self.timeline = Timeline([])
        self._bodies: list[dict[str, Any]] | None = None

    def bodies(self) -> list[dict[str, Any]]:
        """Every definition that it may have had."""
        if self._bodies is None:
            found = {each.body for standings in self.timeline.possible for each in standings if each is not None}
            self._bodies = [{name: msgspec.json.decode(value) for name, value in body} for body in found]
        return self._bodies

    @property
    def definitions(self) -> set[Definition]:
        return self.timeline.definitions
