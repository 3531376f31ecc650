"""Writing down what is to run: now, soon, or far from now; once per key."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from foliot.domain.errors import Conflict, InvalidField
from foliot.domain.fairness import Priority, step
from foliot.kit.envelope import Envelope
from foliot.store.database import Connection, Database
from foliot.store.specs import SpecRef
from foliot.store.statements import SQL

NO_DELAY: Final = timedelta()


class NewRun(NamedTuple):
    """A run to be written: now, at `due`, or after `delay` by the database's clock.

    `target` is what varies per run and so is not in the spec.
    """

    spec: SpecRef
    payload: bytes
    target: bytes | None = None
    job: int | None = None
    due: datetime | None = None
    delay: timedelta | None = None
    origin: int | None = None
    """For runs of a job: none means a run by hand, which gets an origin of its own."""
    limit_key: int | None = None
    """Which runs under the spec's limit it counts together with."""

    @property
    def starts_now(self) -> bool:
        return self.due is None and self.delay is None

    @property
    def is_free(self) -> bool:
        """Whether it is ready as it comes: due now, and under no limit."""
        return self.due is None and self.delay is None and not self.spec.limited

    @property
    def enters(self) -> bool:
        """Whether it is due now, and must wait for its turn."""
        return self.spec.limited and self.starts_now


async def hold_open(connection: Connection, jobs: Iterable[int]) -> set[int]:
    """Those of these jobs whose gate is open; it stays open until the transaction ends."""
    return {row["id"] for row in await connection.fetch(SQL["hold_open"], sorted(jobs))}


async def enqueue(connection: Connection, runs: Sequence[NewRun], ids: Sequence[int], ranks: Sequence[int]) -> None:
    """Write runs that are due now, straight into the ready order."""
    await connection.fetch(
        SQL["enqueue"],
        ids,
        [run.spec.tenant for run in runs],
        [run.spec.id for run in runs],
        [run.job for run in runs],
        [run.spec.lane for run in runs],
        ranks,
        [run.target for run in runs],
        [run.payload for run in runs],
    )


async def enqueue_alone(connection: Connection, run: NewRun) -> int:
    """Write one run, of no job, that is due now; its id. Whoever ranks runs of the same flow is waited for."""
    spec, flow = run.spec, run.spec.flow
    cost = step(spec.weight, Priority(flow.priority))
    arguments = (flow.lane, flow.tenant, flow.priority, cost, spec.id, run.target, run.payload)
    return await connection.fetchval(SQL["enqueue_alone"], *arguments)  # type: ignore[no-any-return]


async def plan(connection: Connection, runs: Sequence[NewRun], ids: Sequence[int]) -> None:
    """Write runs that wait for their time: into `run` if it comes within a minute, else into `timer`.

    Those that are due now and under a limit are written blocked, and are to be let in (`admission.enter`) at once.
    """
    origins = [
        run.origin if run.origin is not None or run.job is None else id_ for run, id_ in zip(runs, ids, strict=True)
    ]
    await connection.fetch(
        SQL["plan"],
        ids,
        [run.spec.tenant for run in runs],
        [run.spec.id for run in runs],
        [run.job for run in runs],
        origins,
        [run.due for run in runs],
        [NO_DELAY if run.starts_now else run.delay for run in runs],  # what is limited is planned, also if it is due
        [run.target for run in runs],
        [run.payload for run in runs],
        [run.limit_key for run in runs],
        [run.enters for run in runs],
    )


class Answer(NamedTuple):
    """The first answer that was given for a key, and what was asked."""

    fingerprint: bytes
    body: bytes


def first_answer(first: Answer, fingerprint: bytes) -> bytes:
    """What a repeated call gets; a key that stood for something else is refused."""
    if first.fingerprint != fingerprint:
        hint = "use a new key for a new request; a key stands for one request for 24 hours or longer"
        raise InvalidField("Idempotency-Key", "was used for a different request", hint)
    return first.body


class Once(NamedTuple):
    """A key under which something is done once."""

    tenant: int
    key: str
    answer: Answer


async def remember(connection: Connection, onces: Sequence[Once]) -> dict[tuple[int, str], Answer]:
    """Keep these first answers; returns those of keys that had one already. Waits for a rival in mid-transaction."""
    fresh = await connection.fetch(
        SQL["remember"],
        [once.tenant for once in onces],
        [once.key for once in onces],
        [once.answer.fingerprint for once in onces],
        [once.answer.body for once in onces],
    )
    taken = {(once.tenant, once.key) for once in onces} - {(row["tenant"], row["key"]) for row in fresh}
    return await recall(connection, sorted(taken)) if taken else {}


async def recall(connection: Connection, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Answer]:
    """The first answers to those of these keys, as (tenant, key), that had one."""
    rows = await connection.fetch(SQL["recall"], [tenant for tenant, _ in keys], [key for _, key in keys])
    return {(row["tenant"], row["key"]): Answer(row["fingerprint"], row["answer"]) for row in rows}


async def begin(database: Database, asked: "Asked") -> Answer | None:
    """Write down that this is being done; none if it is the first time.

    Else the answer of then, which is empty as long as there is none.
    """
    mine = Once(asked.tenant, asked.key or "", Answer(asked.fingerprint, b""))
    async with database.connection() as connection:
        return (await remember(connection, [mine])).get((mine.tenant, mine.key))


async def answer_begun(database: Database, asked: "Asked", body: bytes) -> bytes | None:
    """Keep the answer to what was begun; that of somebody who has done it meanwhile, if there is one."""
    arguments = (asked.tenant, asked.key, asked.fingerprint, body)
    if await database.fetchval("answer_begun", *arguments) is not None:
        return None
    async with database.connection() as connection:
        first = (await recall(connection, [(asked.tenant, asked.key or "")])).get((asked.tenant, asked.key or ""))
    return None if first is None or first.fingerprint != asked.fingerprint else first.body or None


async def forget_begun(database: Database, asked: "Asked") -> None:
    """It came to nothing: the key is free again, unless it has an answer."""
    await database.fetch("forget_begun", asked.tenant, asked.key, asked.fingerprint)


class Asked(NamedTuple):
    """A request that is done once if it carries a key; `fingerprint` tells whether a repeated one asks for the same."""

    tenant: int
    key: str | None = None
    fingerprint: bytes = b""
    envelope: Envelope | None = None
    """Of a request whose answer is not for everybody's eyes: what it is kept in."""


ALWAYS: Final = Asked(0)
"""A request without a key: it is done as often as it is asked for."""


class _RepeatedError(Exception):
    """Leaves the transaction: this key has had its answer."""

    def __init__(self, first: Answer) -> None:
        super().__init__()
        self.first = first


async def answer_once(connection: Connection, asked: Asked, body: bytes) -> None:
    """Keep the answer to a request, or leave the transaction with the one that was given before.

    To be called at the end of a transaction inside `do_once`.
    """
    if asked.key is None:
        return
    kept = body if asked.envelope is None else asked.envelope.seal(body)
    once = Once(asked.tenant, asked.key, Answer(asked.fingerprint, kept))
    if first := (await remember(connection, [once])).get((once.tenant, once.key)):
        raise _RepeatedError(first)


async def do_once(database: Database, asked: Asked, deed: Callable[[], Awaitable[bytes]]) -> tuple[bytes, bool]:
    """Do it unless the key has had its answer; that answer, or the new one, and whether it is new."""

    async def before() -> Answer | None:
        if asked.key is None:
            return None
        async with database.connection() as connection:
            return (await recall(connection, [(asked.tenant, asked.key)])).get((asked.tenant, asked.key))

    if first := await before():  # before ten thousand rows are written in vain
        return _again(first, asked), False
    try:
        return await deed(), True
    except _RepeatedError as repeated:
        return _again(repeated.first, asked), False
    except Conflict:
        # What is in the way may be what this very request made, the first time.
        if (first := await before()) is None:
            raise
        return _again(first, asked), False


def _again(first: Answer, asked: Asked) -> bytes:
    body = first_answer(first, asked.fingerprint)
    if asked.envelope is None:
        return body
    if (opened := asked.envelope.open(body)) is None:
        raise Conflict(
            "this Idempotency-Key was answered already, with a secret that only its own caller may see again",
            "repeat the call with the API key of then; or make another one under a new Idempotency-Key",
        )
    return opened
