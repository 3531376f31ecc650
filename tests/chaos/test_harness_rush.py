"""A rush hands in more than can be done, of both tenants, and no more than that; it excuses nobody."""

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from chaos import rush
from chaos.check.bounds import Bounds
from chaos.check.faultbook import FaultBook
from chaos.deeds import Deeds
from chaos.records import Fault, Operation, Outcome
from chaos.rush import BATCH, MOST, PLENTY, TENANTS, Rusher
from chaos.simulation.loop import VirtualLoop
from chaos.topology import Topology
from chaos.watch import Watch
from foliot.kit.postgres import PostgresServer
from notebook import Notebook

T = TypeVar("T")


class Clients(Notebook):
    """Takes all that is handed in, a call in 50 ms; `pace` of what waits is done between two looks, for each tenant."""

    def __init__(self, pace: int, outcome: Outcome = Outcome.OK) -> None:
        super().__init__(outcome)
        self._pace = pace
        self.waiting: Counter[str] = Counter()
        self.highest: Counter[str] = Counter()

    async def call(self, kind: str, *, before: Operation | None = None, **given: Any) -> Operation:
        await asyncio.sleep(0.05)
        self.waiting[given["tenant"]] += len(given["body"]["runs"])
        self.highest |= self.waiting
        return await super().call(kind, before=before, **given)

    async def count(self) -> Mapping[str, int]:
        for tenant in self.waiting:
            self.waiting[tenant] = max(0, self.waiting[tenant] - self._pace)
        return dict(self.waiting)


def at_once(rushing: Coroutine[Any, Any, T]) -> T:
    """Its minute takes no time, and nothing in it hangs on how busy this machine is."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(rushing)


def rusher(clients: Clients) -> Rusher:
    return Rusher(clients, 7, clients.count)


def test_both_tenants_hand_in_what_waits_and_no_more_than_that():
    clients = Clients(pace=500)
    most = at_once(rusher(clients).rush())
    assert PLENTY <= most <= MOST * len(TENANTS)
    assert clients.highest.keys() == {*TENANTS}
    assert max(clients.highest.values()) <= MOST
    assert clients.waiting.total() <= rush.FEW


def test_every_batch_is_a_call_of_its_own_and_no_two_payloads_are_alike():
    clients = Clients(pace=BATCH)
    again = rusher(clients)
    at_once(again.rush())
    at_once(again.rush())
    payloads = [[run["payload"] for run in (each.body or {})["runs"]] for each in clients.calls]
    assert {len(each) for each in payloads} == {BATCH}
    assert [{each["tenant"] for each in batch} for batch in payloads] == [{each.tenant} for each in clients.calls]
    assert len({each["serial"] for batch in payloads for each in batch}) == BATCH * len(payloads)
    assert len({each.key for each in clients.calls}) == len(clients.calls) > 2


def test_what_never_comes_to_an_end_is_left_after_a_while():
    clients = Clients(pace=0)
    assert at_once(rusher(clients).rush()) == MOST * len(TENANTS)


def test_who_is_refused_asks_again_after_a_while_and_not_at_once():
    clients = Clients(pace=BATCH, outcome=Outcome.FAIL)
    at_once(rusher(clients).rush())
    assert len(clients.calls) <= len(TENANTS) * rush.HANDS * (rush.LASTS / rush.LOOK + 1)


@pytest.mark.parametrize(("pace", "idle"), [(500, False), (MOST, True)])
def test_it_was_too_much_if_much_of_it_waited(pace: int, idle: bool):
    noted: list[Fault] = []
    topology = cast("Topology", SimpleNamespace(nodes={}))
    deeds = Deeds(topology, noted.append, rusher=rusher(Clients(pace)))
    at_once(deeds.do("rush", "workers", random.Random(1)))
    (fault,) = noted
    assert (fault.kind, fault.target, fault.workers, fault.idle) == ("rush", "workers", [], idle)
    assert fault.began < fault.ended


def test_it_excuses_no_duplicate_though_it_is_no_quiet_time():
    book = FaultBook([Fault(kind="rush", target="workers", began=100, ended=150)], Bounds())
    assert not book.held("w1", 110, 120)
    assert not book.held(None, 110, 120)
    assert not book.down(110, 120)
    assert not book.quiet(120)


async def test_what_waits_is_counted_by_tenant_until_a_worker_takes_it(world: Any, dsn: str):
    watch = Watch(cast("PostgresServer", SimpleNamespace(dsn=dsn)))
    assert await watch.waiting() == {}
    other = await world.another_tenant("globex")
    await world.submit(3)
    await world.submit(2, tenant=other)
    own = await world.value("SELECT name FROM tenant WHERE id = $1", world.tenant)
    assert await watch.waiting() == {own: 3, "globex": 2}
    hand = await world.worker()
    await hand.claim(100)
    assert await watch.waiting() == {}
