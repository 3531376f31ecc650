"""Beside a transaction that is held open vacuum removes nothing: what claims and looks of all kinds walk over."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from foliot.domain.floor import SLACK
from foliot.domain.marks import RECENT, Marks
from foliot.domain.shards import EVERYTHING
from foliot.services.glean import PAGES, Gleaner
from foliot.services.promote import Promoter
from foliot.store import dispatch
from foliot.store.database import Line, connect
from foliot.store.dispatch import Claimed
from foliot.store.fleet import ALL_CLAIMS, reap, standing_claims
from foliot.store.flows import reserve
from foliot.store.passed import heads, passed_over
from foliot.store.specs import SpecRef
from foliot.store.submission import NewRun, enqueue
from plans import explain
from world import NOOP, Hand, World

TENANTS = 10
BATCH = 500
PACE = 10_000
"""Runs a second, on the clock of these tests."""
PUBLISH = 0.2


@asynccontextmanager
async def held(world: World) -> AsyncIterator[None]:
    connection = await connect(world.database.dsn, idle_in_transaction_session_timeout="0")
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetch("SELECT count(*) FROM lane")
            yield
    finally:
        await connection.close()


class Stream:
    """Runs of several tenants that come, are claimed and settled, at a pace, by the store's own statements."""

    def __init__(self, worker: Hand, line: Line, refs: list[SpecRef]) -> None:
        self.worker = worker
        self.line = line
        self._refs = refs
        (self.lane,) = worker.lanes
        self.marks = Marks([self.lane])
        self.now = self._published = 0.0
        self._number = 0

    @classmethod
    @asynccontextmanager
    async def opened(cls, world: World) -> AsyncIterator["Stream"]:
        tenants = [world.tenant, *[await world.another_tenant(f"tenant-{number}") for number in range(1, TENANTS)]]
        refs = [await world.specs.intern(tenant, NOOP) for tenant in tenants]
        line = world.database.line()
        try:
            yield cls(await world.worker(), line, refs)
        finally:
            await line.close()

    async def hand_in(self, count: int = BATCH) -> list[int]:
        each = count // TENANTS
        ranks = await reserve(self.line, {ref.flow: each for ref in self._refs}, {}, count)
        runs = [NewRun(ref, b"{}") for ref in self._refs for _ in range(each)]
        async with self.line.borrow(atomic=True) as connection:
            await enqueue(connection, runs, ranks.ids, [ranks.take(run.spec.flow) for run in runs])
        return ranks.ids

    async def claim(self, most: int = BATCH) -> list[Claimed]:
        self._number += 1
        marks = self.marks.next_scan(self.now, [self.lane])
        taken = await dispatch.claim(self.worker.line, self.worker.id, self._number, [self.lane], marks, most)
        if taken:
            self.marks.saw(self.lane, [run.rank for run in taken], self.now)
        return taken

    async def settle(self, taken: list[Claimed]) -> None:
        assert await self.worker.settle(taken) == len(taken)
        await dispatch.forget(self.worker.line, self.worker.id, [taken[0].fence])

    async def push(self, runs: int) -> None:
        for _ in range(runs // BATCH):
            self.now += BATCH / PACE
            await self.hand_in()
            taken = await self.claim()
            assert len(taken) == BATCH
            await self.settle(taken)
            if self.now - self._published >= PUBLISH:
                self._published = self.now
                await dispatch.publish(self.worker.line, self.marks.to_publish(self.now))

    async def pages_of_a_claim(self, most: int = 100) -> int:
        """What the statement looks at that a worker would make now; taken back, and so is what it takes."""
        ids = await self.hand_in(most)
        self.marks.next_scan(self.now, [self.lane])  # perhaps from the floor: then the next one is not
        marks = self.marks.next_scan(self.now, [self.lane])
        plan = await explain(
            self.worker.line, "claim", self.worker.id, self._number + 1, [self.lane], marks, most, [most]
        )
        taken = await self.claim(most)
        assert {run.id for run in taken} == set(ids)
        await self.settle(taken)
        return plan.pages_read

    async def look(self, first: int, pages: int = PAGES) -> int:
        """Pages that a look for stragglers reads, with what it reads of other tables."""
        plan = await explain(self.line, "passed_over", first, pages, [self.lane], [10**18])
        assert plan.whole_scans() == set()
        assert {node["Node Type"] for node in plan.nodes if node.get("Relation Name") == "ready"} == {"Tid Range Scan"}
        return plan.pages_read


async def test_a_claim_beside_a_held_transaction_costs_what_it_did_after_half_a_second(world: World):
    """By ranks alone a claim would step over 80,000 dead entries of ten tenants: over all that there are here."""
    async with Stream.opened(world) as stream:
        await stream.push(30_000)
        before = await stream.pages_of_a_claim()
        async with held(world):
            await stream.push(15_000)
            soon = await stream.pages_of_a_claim()
            await stream.push(30_000)
            late = await stream.pages_of_a_claim()
    dead = 45_000
    assert late < 1.3 * soon, "it does not grow with what is dead"
    assert late - before < RECENT * PACE / 2, "an entry costs less than half a page: they lie side by side"
    assert late < dead / 5


async def test_a_look_for_stragglers_reads_its_pages_and_no_more_however_many_are_dead(world: World):
    async with Stream.opened(world) as stream, held(world):
        await stream.push(20_000)
        pages = await world.value("SELECT pg_relation_size('ready') / 8192")
        assert pages > 3 * 32
        assert max([await stream.look(first, 32) for first in range(0, pages, 32)]) < 32 + 10
        assert await stream.look(pages + 1) < 10


async def test_what_was_passed_is_found_and_claimed_beside_a_held_transaction_with_many_dead_entries(world: World):
    """A run whose rank was given out long before it was there: every claimer is far beyond it."""
    async with Stream.opened(world) as stream, held(world):
        await stream.push(5_000)
        rank = await world.value("SELECT v + 1 FROM lane WHERE id = $1", stream.lane)
        await stream.push(25_000)
        (late,) = await world.submit(1)
        await world.sql("UPDATE ready SET rank = $1 WHERE run = $2", rank, late)
        await world.sql("UPDATE run SET rank = $1 WHERE id = $2", rank, late)
        stream.now += 10
        for _ in range(30):  # also the scans from the floor
            stream.now += 0.02
            assert await stream.claim() == []
        gleaner = Gleaner(world.database, pages=64)
        rounds = 0
        try:
            while not await gleaner.run_once():
                rounds += 1
                assert rounds < 20
        finally:
            await gleaner.close()
        assert rounds > 3, "it was looked for bit by bit"
        stream.now += 0.02
        (taken,) = await stream.claim()
    assert taken.id == late


async def test_a_look_for_due_runs_does_not_walk_over_those_that_were_promoted(world: World):
    """And the look for when the next one falls due does not either."""
    line, promoted = world.promoter._line, 6_000
    promoter = Promoter(world.database, clock=lambda: 0.0)
    async with held(world):
        await world.submit(promoted, delay=timedelta(milliseconds=1))
        while await promoter.run_once():
            pass
        floor = promoter._floors["runs"].since(EVERYTHING)
        assert floor is not None
        # Long ago, as it were: within its slack the floor lies below what was done a moment ago.
        since = floor + SLACK + timedelta(milliseconds=1)
        for statement, whole, short in (
            ("due_runs", (None, 2_000, None, None, None), (None, 2_000, None, None, since)),
            ("next_due", (None, None, None), (None, None, since)),
        ):
            await explain(line, statement, *short)  # the session learns of the tables
            assert (await explain(line, statement, *whole)).pages_read > promoted / 100
            assert (await explain(line, statement, *short)).pages_read < promoted / 300
    await promoter.close()


async def test_a_look_for_orphans_walks_over_few_of_the_claims_that_ended(world: World):
    ended = 20_000
    line = (worker := await world.worker()).line
    await world.submit(2)
    (old,) = await worker.claim(1)
    async with held(world):
        await world.sql(
            "INSERT INTO claim (worker, number, runs) SELECT $1, n, '{1}' FROM generate_series(1000, 999 + $2::int) n",
            worker.id,
            ended,
        )
        await world.sql("DELETE FROM claim WHERE number >= 1000")
        (young,) = await worker.claim(1)
        claims = await standing_claims(line)
        assert claims.these == [old.fence]
        await explain(line, "orphans", *claims)  # the session learns of the tables
        assert (await explain(line, "orphans", *ALL_CLAIMS)).pages_read > ended / 100
        assert (await explain(line, "orphans", *claims)).pages_read < ended / 400
        await worker.die()
        assert (await reap(line, claims)).claims == 2
    assert old.fence < claims.above < young.fence


async def test_only_what_lies_below_the_head_was_passed(world: World):
    worker = await world.worker()
    await world.submit(20)
    (lane,) = worker.lanes
    ranks = [row["rank"] for row in await world.sql("SELECT rank FROM ready WHERE lane = $1 ORDER BY rank", lane)]
    await dispatch.publish(worker.line, {lane: ranks[7]})
    found = await passed_over(worker.line, await heads(worker.line), 0, PAGES)
    assert sorted(each.rank for each in found.passed) == ranks[:7]
    assert (await passed_over(worker.line, {}, 0, PAGES)).passed == []
    await world.sql("UPDATE ready SET lane = lane + 5 WHERE lane = $1 AND rank <= $2", lane, ranks[1])
    others = {lane + 1: 10**18, lane + 9: 10**18}
    assert (await passed_over(worker.line, others, 0, PAGES)).passed == []
    found = await passed_over(worker.line, {**others, lane: ranks[3]}, 0, PAGES)
    assert [(each.lane, each.rank) for each in found.passed] == [(lane, ranks[2])]
