"""Work on the wire: how a worker that has only a URL and a key fetches runs, keeps its lease and tells how they ended.

In columns, because batches are large: the n-th entries of all columns belong to the same run.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from foliot.domain.labels import MOST as MOST_LABELS
from foliot.domain.outcome import Outcome
from foliot.wire.timing import Instant

LARGEST_CLAIM: Final = 800
LONGEST_WAIT: Final = 25.0
"""Seconds that a claim waits for work: below what proxies usually allow a request to take."""
MOST_SETTLED: Final = 10_000

Fence = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Position = Annotated[int, Meta(ge=1, le=LARGEST_CLAIM)]
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Lane = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Most = Annotated[int, Meta(ge=0, le=LARGEST_CLAIM)]
Attempt = Annotated[int, Meta(ge=0, le=2**15 - 2)]
Pid = Annotated[int, Meta(ge=0, le=2**31 - 1)]


Word = Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Registration(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A worker makes itself known: the queues it serves, and the groups of handlers it has for each of them.

    With `labels` it takes runs, too, that require some of them. The rest is for people to see.
    """

    name: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
    queues: Annotated[list[Annotated[str, Meta(min_length=1, max_length=200)]], Meta(min_length=1, max_length=100)]
    groups: Annotated[list[Annotated[str, Meta(min_length=1, max_length=210)]], Meta(min_length=1, max_length=1_000)]
    host: Word = ""
    pid: Pid = 0
    version: Word = ""
    app: Word | None = None
    concurrency: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    labels: Annotated[list[str], Meta(max_length=MOST_LABELS)] = []


class Begun(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Runs whose handlers go on for longer than a blink, or are about to begin and may begin only once."""

    run_id: Annotated[list[str], Meta(max_length=MOST_SETTLED)]
    fence: list[Fence]
    started_at: list[Instant]


class InHand(msgspec.Struct, forbid_unknown_fields=True):
    """Runs that the worker has in hand and how many it takes a second, lane by lane as the registration was told."""

    running: Annotated[list[Annotated[int, Meta(ge=0, le=2**31 - 1)]], Meta(max_length=1_000)]
    rate: Annotated[list[Annotated[float, Meta(ge=0, le=1e9)]], Meta(max_length=1_000)]


class Heartbeat(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The worker lives. `register` in the first one, `leaving` in the last.

    `known` are the fences of the claims that it knows of, to hear whether others stand in its name.
    With `wider`, one that carries labels asks for all lanes that it may claim by now: others may have come to be.
    """

    worker: str
    register: Registration | None = None
    load: InHand | None = None
    started: Begun | None = None
    leaving: bool = False
    known: Annotated[list[Fence], Meta(max_length=100_000)] | None = None
    wider: bool = False


class RunRef(msgspec.Struct, rename="camel"):
    run_id: str
    fence: int


class ToldLane(msgspec.Struct):
    """What a worker claims from: one group of handlers of one queue, with what its runs require."""

    lane: int
    queue: str


class HeartbeatAnswer(msgspec.Struct):
    """`alive` is false once the worker was declared dead, which is final. `lanes` are what it may claim, if it has
    registered with this call or asked for them.

    `lost` are those of the `started` runs that the worker holds no more. One that is `draining` is to claim nothing
    more, finish and leave; of lanes that are `paused` it is to begin nothing, and to hand back what has not begun.
    Runs to `stop` are to end; what is `recalled` is to be handed back unless it has begun.
    If it is `astray`, claims stand in its name that it did not name: the reply was lost, or is on its way.
    """

    alive: bool
    lanes: list[ToldLane] = []
    lost: list[RunRef] = []
    draining: bool = False
    paused: list[int] = []
    astray: bool = False
    stop: list[str] = []
    recalled: list[str] = []
    voucher: bytes = b""
    """The worker's own key, in the answer to its registration: with it, it makes the tokens of its calls."""


class RunColumns(msgspec.Struct, rename="camel"):
    """Runs that the worker now holds."""

    run_id: list[str]
    fence: list[int]
    position: list[int]
    tenant: list[int]
    spec: list[int]
    job_id: list[str | None]
    attempt: list[int]
    deaths: list[int]
    forgiven: list[int | None]
    scheduled_at: list[Instant]
    target: list[msgspec.Raw]
    payload: list[msgspec.Raw]


class ToldSpec(msgspec.Struct):
    """How to run the runs of this spec. What a number stands for never changes."""

    spec: int
    lane: int
    body: msgspec.Raw
    tenant: str = ""
    signing: bytes = b""
    """What calls of its handler are to be signed with."""


class Succeeded(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Runs of one claim that succeeded."""

    fence: Fence
    run_id: Annotated[list[str], Meta(min_length=1, max_length=LARGEST_CLAIM)]
    position: list[Position]
    started_at: list[Instant]


class Ended(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One attempt that ended, in full."""

    run_id: str
    fence: Fence
    position: Position
    tenant: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    job_id: str | None = None
    attempt: Attempt
    scheduled_at: Instant
    started_at: Instant | None
    outcome: Outcome


class SettleBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Endings: successes in columns, the others each by itself. May be repeated after a lost reply.

    `doubted` are successes that an answer called `uncovered`, in full: are they on record from an earlier try?
    `forget` are claims of which every run is settled once this is.
    """

    worker: str
    succeeded: Annotated[list[Succeeded], Meta(max_length=MOST_SETTLED)] = []
    ended: Annotated[list[Ended], Meta(max_length=MOST_SETTLED)] = []
    doubted: Annotated[list[Ended], Meta(max_length=MOST_SETTLED)] = []
    forget: Annotated[list[Fence], Meta(max_length=MOST_SETTLED)] = []


class SettleAnswer(msgspec.Struct):
    """`lost`: the lease was lost; the result is kept for people, and does not count.

    `uncovered`: not held now, say it again as `doubted`.
    """

    lost: list[RunRef] = []
    uncovered: list[RunRef] = []


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Up to `most` runs of these lanes, in this order, waiting up to `wait` seconds for the first.

    `portions` say how many each of the lanes may give at most; without them, each may give all.
    `number` names the claim: repeated, it answers with what it took before. With `known`, the fences that the worker
    knows of, it answers with what else stands in the worker's name, and takes nothing.
    With `settle`, it tells of endings besides, and does not wait for work.
    """

    worker: str
    number: Number = 0
    lanes: Annotated[list[Lane], Meta(max_length=1_000)] = []
    portions: Annotated[list[Most], Meta(max_length=1_000)] = []
    most: Most = 0
    wait: Annotated[float, Meta(ge=0, le=LONGEST_WAIT)] = LONGEST_WAIT
    known: Annotated[list[Fence], Meta(max_length=100_000)] | None = None
    settle: SettleBody | None = None


class ClaimAnswer(msgspec.Struct):
    """What was taken, complete in itself: the specs and the names of jobs are those of these runs."""

    runs: RunColumns
    specs: list[ToldSpec]
    names: dict[str, str]
    settled: SettleAnswer | None = None
    """What became of the endings that the claim told of."""
    news: bool = False
    """Whether a heartbeat would learn something: that it is to leave, or a run to stop, or a queue was paused, or
    there is another lane."""


class LookBody(msgspec.Struct, forbid_unknown_fields=True):
    """Processes of one machine whose workers this key has registered."""

    host: Word
    pids: Annotated[list[Pid], Meta(max_length=1_000)]


class LookAnswer(msgspec.Struct):
    """How many of them have work in hand, and how many runs wait for them: not counted far beyond what is many."""

    busy: int
    backlog: int


class SecretsBody(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Secrets that a run refers to which the worker holds, and is about to begin."""

    worker: str
    run_id: str
    fence: Fence
    names: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(min_length=1, max_length=1_000)]


class SecretsAnswer(msgspec.Struct):
    """By name, those that there are. Nothing of a run that is not `held`: the worker has lost it, or never had it."""

    values: dict[str, str]
    held: bool = True

    def __repr__(self) -> str:
        return "SecretsAnswer()"


def same_length(body: Any, *columns: str) -> bool:
    """Whether all columns have an entry for every run."""
    return len({len(getattr(body, name)) for name in columns}) <= 1
