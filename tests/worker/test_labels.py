"""Runs that require labels, and workers that carry them: through SQL and over HTTP alike."""

import asyncio
from collections.abc import AsyncIterator
from itertools import chain, combinations
from typing import Any

import msgspec
import pytest

from foliot.domain.errors import Forbidden, InvalidField
from foliot.kit.settings import Access
from foliot.kit.signals import FLEET
from foliot.sdk import Context
from foliot.services.gateway import Bearer
from foliot.store import fleet
from foliot.store.database import Line
from foliot.store.fleet import AT_REST, Load
from foliot.wire.work import Heartbeat, Registration
from foliot.worker.gateway import HttpCarrier, open_gateway_session
from foliot.worker.port import Carrier
from foliot.worker.process import WorkerOptions, WorkerProcess
from sdk.serving import served
from services.remotes import MINE
from worker.carrying import NewCarrier, through_http, through_sql
from worker.crew import Crew
from worker.making import Gate, eventually, function_spec
from world import PATIENCE, World

NOOP = function_spec("noop")
SETS = [*chain.from_iterable(combinations("abc", size) for size in range(4))]


def asking(*labels: str) -> Any:
    return msgspec.structs.replace(NOOP, requires=labels or msgspec.UNSET)


@pytest.fixture(params=["sql", "http"])
async def new(request: pytest.FixtureRequest, world: World, dsn: str) -> AsyncIterator[NewCarrier]:
    way = through_sql(dsn) if request.param == "sql" else through_http(world)
    async with way as found:
        yield found


async def claim(carrier: Carrier, lanes: list[int], number: int = 1) -> list[int]:
    taken = await carrier.claim(number, lanes, [0] * len(lanes), 100, [100] * len(lanes))
    return sorted(run.id for run in taken)


async def test_a_worker_serves_the_lanes_that_require_a_part_of_what_it_carries(world: World, new: NewCarrier):
    lanes = {each: (await world.specs.intern(world.tenant, asking(*each))).lane for each in SETS}
    assert len({*lanes.values()}) == len(SETS)
    for number, carried in enumerate(SETS, 1):
        served = await new(number).register(["default"], ["fn:noop"], carried)
        assert {each for each in SETS if lanes[each] in served} == {each for each in SETS if {*each} <= {*carried}}
        assert {*served.values()} == {"default"}
        assert served.keys() <= {*lanes.values()}


async def test_of_other_queues_and_handlers_it_serves_nothing(world: World, new: NewCarrier):
    others = [
        msgspec.structs.replace(asking("a"), queue="other"),
        msgspec.structs.replace(function_spec("else"), requires=("a",)),
    ]
    strange = {(await world.specs.intern(world.tenant, each)).lane for each in others}
    assert strange.isdisjoint(await new(1).register(["default"], ["fn:noop"], ("a", "b")))


async def test_runs_go_to_who_carries_what_they_require_and_others_leave_them(world: World, new: NewCarrier):
    (plain,) = await world.submit()
    (some,) = await world.submit(1, asking("eu"))
    (more,) = await world.submit(1, asking("eu", "gpu"))
    bare, rich = new(1), new(2)
    assert await claim(bare, [*await bare.register(["default"], ["fn:noop"])]) == [plain]
    assert await claim(rich, [*await rich.register(["default"], ["fn:noop"], ("eu", "gpu", "old"))]) == [some, more]


async def test_a_lane_that_comes_to_be_is_learnt_of_with_the_next_heartbeat(world: World, new: NewCarrier):
    carrier = new(1)
    lanes = await carrier.register(["default"], ["fn:noop"], ("eu", "gpu"))
    (run,) = await world.submit(1, asking("gpu"))
    await world.submit(1, asking("gpu", "us"))
    wider = (await carrier.beat(Load(dict.fromkeys(lanes, 1)))).lanes
    assert len(wider) == len(lanes) + 1
    assert await claim(carrier, [*wider], 2) == [run]
    # What it tells from now on stands beside its lanes, the new one too.
    (new_lane,) = wider.keys() - lanes.keys()
    await carrier.beat(Load({new_lane: 7}))
    assert await world.value("SELECT running[array_position(lanes, $1)] FROM worker", new_lane) == 7


async def test_a_worker_that_missed_the_word_of_its_new_lanes_goes_on(world: World, new: NewCarrier):
    carrier = new(1)
    lanes = await carrier.register(["default"], ["fn:noop"], ("eu", "gpu"))
    await world.submit(1, asking("gpu"))
    line = world.database.line()
    await fleet.widen(line, 1)  # as if the reply had been lost
    await line.close()
    standing = await carrier.beat(Load(dict.fromkeys(lanes, 1)))
    assert len(standing.lanes) == len(lanes) + 1


async def test_who_carries_nothing_asks_for_nothing_more(world: World, new: NewCarrier):
    carrier = new(1)
    await carrier.register(["default"], ["fn:noop"])
    await world.submit(1, asking("gpu"))
    assert (await carrier.beat(AT_REST)).lanes == {}


async def test_a_worker_serves_only_so_many_lanes(world: World, new: NewCarrier, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fleet, "MOST_LANES", 4)
    for each in SETS:
        await world.specs.intern(world.tenant, asking(*each))
    lanes = await new(1).register(["default"], ["fn:noop"], ("a", "b", "c"))
    assert len(lanes) == 4
    assert await world.value("SELECT count(*) FROM lane WHERE id = ANY ($1) AND labels IN ('', 'a,b,c')", [*lanes]) == 2


async def test_a_running_worker_takes_up_a_lane_as_soon_as_it_is_there(world: World, dsn: str):
    ran: list[Any] = []

    async def noop(ctx: Context, payload: Any) -> None:
        ran.append(payload)

    async with Crew(dsn).work({"noop": noop}, labels=("eu", "gpu")) as hired:
        await eventually(lambda: hired.process._carrier._listening)
        # Its next heartbeat is seconds away: it is told.
        began = asyncio.get_running_loop().time()
        await world.submit(1, asking("gpu"))
        await eventually(lambda: ran)
        assert asyncio.get_running_loop().time() - began < 4.0


async def test_workers_are_told_only_of_lanes_that_some_of_them_may_have_to_learn_of(world: World, dsn: str):
    told: list[str] = []
    line = Line(dsn)
    await (await line.connection()).add_listener(FLEET, lambda *_: told.append(FLEET))

    async def heard(*labels: str) -> int:
        told.clear()
        await world.submit(1, asking(*labels))
        await line.fetch("sign_of_life")  # what was sent before comes first
        return len(told)

    assert await heard("eu") == 0
    async with through_sql(dsn) as new:
        await new(1).register(["default"], ["fn:noop"], ("eu", "gpu", "old"))
    assert [await heard(), await heard("us"), await heard("gpu", "us")] == [0, 0, 0]
    assert [await heard("gpu"), await heard("gpu"), await heard("eu", "old")] == [1, 0, 1]
    await line.close()


async def test_a_remote_worker_that_waits_is_told_of_it(world: World):
    gate = Gate()
    async with served(world) as foliot, open_gateway_session() as session:
        carrier = HttpCarrier(session, Access(foliot.url, foliot.key), 7, "remote")
        options = WorkerOptions(groups=("fn:noop",), labels=("eu", "gpu"))
        process, stop, ready = (
            WorkerProcess(carrier, lambda _: gate.executor, options),
            asyncio.Event(),
            asyncio.Event(),
        )
        task = asyncio.ensure_future(process.run(stop, ready.set))
        await asyncio.wait_for(ready.wait(), PATIENCE)
        world.gateway.hear()
        await eventually(lambda: world.gateway._news._seen is not None and world.gateway._claims._polls)
        await world.submit(1, asking("eu"))
        world.gateway.hear()
        await eventually(lambda: gate.begun)
        gate.opened.set()
        stop.set()
        await asyncio.wait_for(task, PATIENCE)


async def test_a_key_serves_its_queues_with_any_labels_and_no_others(world: World):
    limited = Bearer("mine", ["mail"])
    told = Registration("remote", ["mail"], ["fn:noop"], labels=["gpu", "eu"])
    answer = await world.gateway.heartbeat(limited, Heartbeat("wrk_0000000000001", told))
    assert [each.queue for each in answer.lanes] == ["mail", "mail"]
    other = Registration("remote", ["default"], ["fn:noop"], labels=["gpu"])
    with pytest.raises(Forbidden):
        await world.gateway.heartbeat(limited, Heartbeat("wrk_0000000000002", other))
    wrong = Registration("remote", ["mail"], ["fn:noop"], labels=["GPU"])
    with pytest.raises(InvalidField) as caught:
        await world.gateway.heartbeat(MINE, Heartbeat("wrk_0000000000003", wrong))
    assert caught.value.field == "register.labels[0]"
