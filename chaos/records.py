"""What a chaos run leaves behind: operations, side effects, faults, and what the product says of itself at the end.

Four independent records, each a file of JSON lines (the dump: one JSON object). Times are seconds since the Unix epoch
by the clock of the machine that runs the harness, which no fault touches.
"""

import functools
import gc
import hashlib
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import msgspec

Record = TypeVar("Record", bound=msgspec.Struct)
Given = ParamSpec("Given")
Answer = TypeVar("Answer")
SIDE: Final = "side"
"""The queue that is paused now and then."""
LIMITS: Final = {"strict": 1, "pair": 2, "trio": 3}
"""Handlers, and how many of each account may go at once."""
CROWDED: Final = "initech"
CROWD: Final = 2
"""A tenant, and how many of its runs may go at once."""
RATIONED: Final = "hooli"
"""A tenant whose payloads are encrypted, and which has a quota and a slow key."""
MOST_JOBS: Final = 4
"""Jobs that it may have."""
PACE: Final = {"perSecond": 2.0, "burst": 5}
"""How fast its slow key may call."""
WHISPER: Final = "whisper."
"""Stands in its payloads, and nowhere else."""
CONFIDENCE: Final = "confided"
"""What a secret is called that handlers are given, and that they say in their errors, results and logs."""
CONFIDED: Final = "confided."
"""How each value of it begins, and nothing else."""
CONFIDING: Final = "globex"
"""Whose secret it is."""
POISON: Final = "poison"
"""The handler that kills its own process."""
BOOKING: Final = ("booked", "bookedPlainly")
"""Handlers whose effect is a row in the transaction of their success: a coroutine, and a plain function."""
SNOOZE: Final = 1.0
"""Seconds after which a handler that snoozes asks to be called again."""
QUEUES: Final = frozenset({"queue", "queueOne", "cancelPrevious"})
"""Kinds of overlap that let an instant wait until the one before is over."""
NO_ROOM: Final = "No space left on device"
"""What the database says of a write that failed on a full disk."""
REFUSED: Final = "results came after the lease was lost and were not taken"
"""What a worker logs of results that the database did not take from it."""
LEFT_BEHIND: Final = "runs were left behind although it was their turn"
"""What a scheduler logs when its sweeper had to call somebody."""


class Outcome(StrEnum):
    """What a client may conclude from an answer."""

    OK = "ok"  # it happened
    FAIL = "fail"  # it did not happen, and never will
    UNKNOWN = "unknown"  # time-out, 5xx, cut connection: it may have happened, or may still happen


class Operation(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One call of a client, as the client saw it."""

    number: int
    client: int
    tenant: str
    kind: str
    """createJob, createJobs, changeJob, pauseJob, resumeJob, cancelJob, deleteJob, runJob, createRun, createRuns,
    backfillJob, putCalendar, cancelRun, retryRun, replayLetters, discardLetters, pauseQueue, resumeQueue, submitInside,
    weighTenant, createKey, rotateKey, revokeKey, rotateEncryption, putSecret."""
    invoked: float
    completed: float
    outcome: Outcome
    job: str | None = None
    """The job that was acted on."""
    run: str | None = None
    """The run that was acted on."""
    thing: str | None = None
    """Whatever else was acted on: a key, by its id."""
    by: str | None = None
    """The key that was shown, if not its tenant's first: its id; or another tenant, whose first key it was."""
    match: int | None = None
    """The version that it was meant for (If-Match)."""
    body: dict[str, Any] | None = None
    """What was sent, in the wire's spelling."""
    key: str | None = None
    """Idempotency-Key; every repetition of a call carries the same one and is an operation of its own."""
    answer: dict[str, Any] | None = None
    """The decoded answer of a call that succeeded."""
    status: int = 0
    """HTTP status; 0 if there was no answer."""
    api: int = 0
    """Which API was asked."""
    repeats: int = 0
    """The number of the first try, if this is not it."""
    abandoned: bool = False
    """Whether its client was told to stop before there was an answer."""

    @property
    def unsent(self) -> bool:
        """Whether nobody could be reached: then nothing has happened, and it may be tried elsewhere."""
        return self.outcome is Outcome.FAIL and not self.status

    @property
    def request(self) -> str:
        """What the request is called; the audit trail repeats it."""
        return f"chaos-{self.number}"


class Phase(StrEnum):
    START = "start"
    BEAT = "beat"
    EFFECT = "effect"
    END = "end"
    REJECTED = "rejected"  # guard mode: the fence was lower than the highest seen for this run


class Effect(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One side effect, in the order in which the ledger wrote it to disk."""

    seq: int
    at: float
    phase: Phase
    tenant: str
    run: str
    attempt: int
    fence: int
    worker: str
    """Boot id of the worker process; empty if nobody saw it: HTTP targets do not, commands may be gone too soon."""
    job: str | None = None
    scheduled_at: float | None = None
    concurrency_key: str | None = None
    """The account that the handler was told to act on."""
    payload: str = ""
    """Digest of the payload as the handler received it."""
    nonce: str = ""
    """One per attempt begun: tells two starts of the same attempt apart."""
    failed: bool = False
    """On `end`: the handler is about to report failure, on purpose."""
    isolated: bool = False
    """The handler has a process of its own."""
    refused: Phase | None = None
    """What a rejected one would have been."""


class Fault(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing that the nemesis did, from when to when, and to whom."""

    kind: str
    """kill, stop (SIGSTOP..SIGCONT, of all that it has started), stopSupervisor (of nobody else), postgresKill,
    postgresStop, outage (of the database, for longer than a lease), delay, stall, reset, halfOpen, cutBeforeCommit,
    cutAfterCommit, diskFull, clockJump, partition, rollingRestart, poison (by a run), rush (more to do than can be
    done)."""
    target: str
    """api-0, scheduler-1, worker-2, postgres, proxy-1, …"""
    began: float
    ended: float
    pid: int = 0
    workers: list[str] = []
    """Boot ids of the worker processes whose runs this fault may have touched."""
    detail: str = ""
    late: int = 0
    """Writes of its target that reached the database after it had been declared dead and others had its runs."""
    idle: bool = False
    """Nobody was hurt by it: a worker had nothing that others could take over, the full disk refused no write, or
    somebody who was told to end did not come back. It explains what it may explain, and shows nothing."""


class Trail(msgspec.Struct):
    """A tenant's audit trail as it is stored: every column, instants in microseconds, hashes in hex."""

    entries: list[dict[str, Any]]
    position: int
    """How far its chain goes, and the hash that stands for all of it."""
    hash: str


class Dump(msgspec.Struct, kw_only=True):
    """What a user sees through the public API after everything has healed and come to rest."""

    taken: float
    jobs: dict[str, list[dict[str, Any]]]
    """By tenant, as GET /v1/jobs gives them."""
    runs: dict[str, list[dict[str, Any]]]
    attempts: dict[str, list[dict[str, Any]]]
    occurrences: dict[str, list[dict[str, Any]]] = {}
    """By recurring job, as GET /v1/jobs/{job}/occurrences gives them."""
    backfilled: dict[str, dict[str, list[str]]] = {}
    """By job and back-fill: the runs that it made, in this order."""
    filled: list[str] = []
    """Back-fills that say of themselves that they are through."""
    decided: dict[str, list[dict[str, Any]]] = {}
    """By run: what the product has on record of its replays and of its discard, {"deed", "at", "attempts", "by"}, in
    order; `attempts` that it had used up by then."""
    booked: dict[str, list[int]] = {}
    """By run: the fences that wrote an effect in the transaction of their success."""
    uncalled: int = 0
    """Lines in which somebody was seen, while the run went on, whose turn it was, and whom nobody had called."""
    left: list[str] = []
    """Processes of commands that were there when everything had come to rest."""
    missed: dict[str, list[dict[str, Any]]] = {}
    """Recorded ranges of missed instants per tenant: {"job", "from", "through"}, and when they were "opened"."""
    audit: dict[str, Trail] = {}
    """By tenant, the empty name for callers that nobody knows; nothing at all if it was not read."""
    exposed: dict[str, int] = {}
    """By table: rows in which something stands in clear text that should be encrypted."""
    sealed: int = 0
    """Payloads that are stored encrypted."""
    let_out: dict[str, int] = {}
    """By table: rows in which a secret can be read that a handler was given."""
    quiet: bool = True
    """False if work was still going on when patience ran out: that is a finding of its own."""


class Evidence(msgspec.Struct, kw_only=True):
    """Everything that the checker looks at."""

    seed: int
    operations: list[Operation]
    effects: list[Effect]
    faults: list[Fault]
    dump: Dump
    settings: dict[str, Any] = {}
    """lease, grace, catch-up window and the like, in seconds, as the product was set up."""
    refused: int = 0
    """Results that came too late and were not taken, by the workers' own word."""
    left_behind: int = 0
    """Runs whose turn had come and that only the sweeper called, by the schedulers' own word."""
    no_room: int = 0
    """Writes of the database that failed because the disk was full, by its own word."""
    overheard: dict[str, int] = {}
    """By process: lines of its log in which a secret can be read."""


def digest(payload: Any) -> str:
    """What `Effect.payload` holds: the same for equal JSON values, however they were spelled on their way."""
    return hashlib.blake2b(msgspec.json.encode(payload, order="sorted"), digest_size=8).hexdigest()


def uncollected(deed: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Without the collector: of millions of records not one is in a cycle, and to look takes longer than to check."""

    @functools.wraps(deed)
    def done(*given: Given.args, **named: Given.kwargs) -> Answer:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return deed(*given, **named)
        finally:
            if collecting:
                gc.enable()

    return done


def each_line(path: Path, kind: type[Record], about: str = "") -> Iterator[Record]:
    """All whole lines that name what they are to be about; a last line cut short by a crash is left out."""
    decoder, named = msgspec.json.Decoder(kind), about.encode()
    with path.open("rb") as lines:  # one by one: those of hours are larger than what they say
        for line in lines:
            if named in line and line.endswith(b"\n"):
                yield decoder.decode(line)


def read_lines(path: Path, kind: type[Record]) -> list[Record]:
    return list(each_line(path, kind))


@uncollected
def load(folder: Path) -> Evidence:
    head = msgspec.json.decode((folder / "run.json").read_bytes())
    return Evidence(
        seed=head["seed"],
        settings=head["settings"],
        operations=read_lines(folder / "operations.jsonl", Operation),
        effects=read_lines(folder / "ledger.jsonl", Effect),
        faults=read_lines(folder / "faults.jsonl", Fault),
        dump=msgspec.json.decode((folder / "dump.json").read_bytes(), type=Dump),
        refused=sum(map(_refused, (folder / "logs").glob("worker-*.log"))),
        left_behind=sum(map(_left_behind, (folder / "logs").glob("scheduler-*.log"))),
        no_room=sum(map(_no_room, (folder / "logs").glob("postgres.log"))),
        overheard={log.stem: count for log in sorted((folder / "logs").glob("*-*.log")) if (count := _overheard(log))},
    )


def _left_behind(log: Path) -> int:
    found = re.findall(rf"{LEFT_BEHIND}.*?lines=(\d+) +runs=(\d+)", log.read_text(errors="replace"))
    return sum(int(lines) + int(runs) for lines, runs in found)


def _no_room(log: Path) -> int:
    return log.read_text(errors="replace").count(NO_ROOM)


def _overheard(log: Path) -> int:
    return sum(CONFIDED in line for line in log.read_text(errors="replace").splitlines())


def _refused(log: Path) -> int:
    return sum(int(count) for count in re.findall(rf"{REFUSED}.*?runs=(\d+)", log.read_text(errors="replace")))
