"""The way through SQL: what a lost reply leaves behind is found, also when it comes late."""

from functools import partial

from foliot.store import dispatch
from foliot.store.database import Line
from foliot.worker.carrier import SqlCarrier
from world import World

WORKER = 77


async def test_a_claim_that_arrives_when_its_worker_has_gone_on_is_found(world: World, dsn: str):
    carrier, late = SqlCarrier(partial(Line, dsn), WORKER, "test"), Line(dsn)
    lanes = list(await carrier.register(["default"], ["fn:noop"]))
    marks = [0] * len(lanes)
    (first,) = await world.submit()
    (known,) = await carrier.claim(1, lanes, marks, 10, [10])
    (second,) = await world.submit()
    await dispatch.claim(late, WORKER, 2, lanes, marks, 10)  # sent before, given up, and here now
    (found,) = await carrier.strays([known.fence])
    assert (known.id, found.id) == (first, second)
    assert await carrier.strays([known.fence, found.fence]) == []
    await dispatch.claim(late, WORKER + 1, 1, lanes, marks, 10)
    assert {run.id for run in await carrier.strays([])} == {first, second}
    for each in (carrier, late):
        await each.close()
