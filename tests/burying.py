"""Dead letters for tests: made, replayed, swept."""

from typing import Any

import msgspec

from foliot.domain.backfill import MOST_AT_ONCE
from foliot.domain.ids import decode, encode
from foliot.domain.letters import Selection, Sweep
from foliot.domain.operation import OperationKind
from foliot.domain.outcome import Ending, Outcome
from foliot.wire.letters import LettersDone
from world import Hand, World

DEAD = Outcome.dead(Ending.FAILED, "boom", "ValueError")


async def bury(
    world: World, count: int = 1, outcome: Outcome = DEAD, *, worker: Hand | None = None, **fields: Any
) -> list[int]:
    """Let runs be tried once and die of it; their numbers, rising."""
    ids = await world.submit(count, **fields)
    worker = worker or await world.worker()
    taken = [run for run in await worker.claim(count + 100) if run.id in ids]
    assert await worker.conclude(taken, outcome) == count
    return sorted(ids)


async def bury_fired(world: World, job: int) -> int:
    """Let the run of a job's next instant die."""
    await world.fire(await world.next_at())
    worker = await world.worker()
    taken = [run for run in await worker.claim() if run.job == job]
    assert await worker.conclude(taken, DEAD) == 1
    return taken[0].id


async def replay(world: World, *runs: int, tenant: int | None = None, **key: Any) -> LettersDone:
    body = await world.dead_letters.replay(tenant or world.tenant, runs, **key)
    return msgspec.json.decode(body, type=LettersDone)


async def discard(world: World, *runs: int, tenant: int | None = None) -> LettersDone:
    return msgspec.json.decode(await world.dead_letters.discard(tenant or world.tenant, runs), type=LettersDone)


def names(*runs: int) -> list[str]:
    return [encode("run", run) for run in runs]


def asked(kind: OperationKind = OperationKind.REPLAY, **fields: Any) -> Sweep:
    usual = {
        "selection": Selection(), "name": "mend", "arguments": {}, "per_second": None, "concurrency": MOST_AT_ONCE
    }  # fmt: skip
    return Sweep(kind=kind, **{**usual, **fields})


async def begin(world: World, kind: OperationKind = OperationKind.REPLAY, **fields: Any) -> int:
    body = await world.operations.sweep(world.tenant, asked(kind, **fields))
    return decode("op", msgspec.json.decode(body)["operationId"])
