"""Graphs: nothing before its parents, everything once, and what has failed holds up what waits for it, visibly."""

import asyncio
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from burying import DEAD, discard, replay
from foliot.domain.errors import Conflict, Cycle, InvalidField
from foliot.domain.graph import NOTHING_YET, Edge, Past, Verdict, When, verdict
from foliot.domain.ids import encode
from foliot.domain.outcome import Outcome
from foliot.domain.states import State
from foliot.kit.signals import READY
from foliot.services.reap import Reaper
from foliot.services.sweep import Sweeper
from foliot.services.tenants import Tenants
from foliot.store.dispatch import Claimed
from foliot.wire.jobs import JobBatch, drafts_of
from world import World

ENDINGS = {
    State.SUCCEEDED: None,
    State.DEAD: DEAD,
    State.CANCELLED: Outcome.cancelled(),
    State.UNKNOWN: Outcome.unknown("lost"),
}


async def make(world: World, *jobs: dict[str, Any]) -> list[int]:
    """Create jobs in one call, each known by its key; those of every hour are half an hour away from their next."""
    away = {"PT1H": {"scheduleAt": world.half_way(timedelta(hours=1))}}
    whole = [{"name": each["key"], "handler": "noop", **away.get(each.get("every", ""), {}), **each} for each in jobs]
    drafts = drafts_of(msgspec.json.decode(msgspec.json.encode({"jobs": whole}), type=JobBatch))
    body = await world.control.create_batch(world.tenant, drafts, render=lambda ids: msgspec.json.encode(list(ids)))
    return msgspec.json.decode(body)  # type: ignore[no-any-return]


def needs(**parents: str) -> list[dict[str, str]]:
    return [{"job": job, "when": when} for job, when in parents.items()]


async def runs_of(world: World, jobs: list[int]) -> dict[int, int]:
    """The last run of each job, live or not."""
    rows = await world.sql(
        "SELECT job, max(id) AS run FROM (SELECT job, id FROM run WHERE job = ANY ($1) UNION ALL"
        " SELECT job, run FROM history WHERE job = ANY ($1)) AS x GROUP BY job",
        jobs,
    )
    return {row["job"]: row["run"] for row in rows}


async def state(world: World, run: int) -> str:
    return (await world.insights.run(world.tenant, run)).state


async def fired(world: World, *jobs: dict[str, Any]) -> list[int]:
    """Create a graph of an hourly job and others, and fire it; the runs in the order of the jobs."""
    made = await make(world, *jobs)
    await world.fire(await world.next_at())
    run_of = await runs_of(world, made)
    return [run_of[job] for job in made]


class Walk:
    """Random ends of a random graph, in random order and batches, beside a model that knows the rule."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.dice = random.Random(seed)
        self.past: dict[int, Past] = defaultdict(lambda: NOTHING_YET)
        self.held: dict[int, Claimed] = {}
        self.dead: set[int] = set()
        self.began: set[int] = set()

    async def begin(self, *, once: bool) -> None:
        size = self.dice.randint(3, 8)
        keys = [f"n{number}" for number in range(size)]
        jobs: list[dict[str, Any]] = []
        pairs = []
        for place, key in enumerate(keys):
            parents = self.dice.sample(range(place), self.dice.randint(min(place, 1), min(place, 3)))
            whens = [self.dice.choices(list(When), [6, 2, 2])[0] for _ in parents]
            pairs += [(parent, place, when) for parent, when in zip(parents, whens, strict=True)]
            asked = [{"job": keys[parent], "when": when.word} for parent, when in zip(parents, whens, strict=True)]
            own = {"scheduleAt": "2026-01-01T00:00:00Z"} if once else {"every": "PT1H"}
            jobs.append({"key": key, **(own if place == 0 else {}), "dependsOn": asked})
        made = await make(self.world, *self.dice.sample(jobs, size))
        if not once:
            await self.world.fire(await self.world.next_at())
        rows = await self.world.sql("SELECT id, key FROM job WHERE id = ANY ($1)", made)
        number = {row["key"]: row["id"] for row in rows}
        run_of = await runs_of(self.world, made)
        self.runs = [run_of[number[key]] for key in keys]
        self.edges = [Edge(self.runs[parent], self.runs[child], when) for parent, child, when in pairs]
        self.hand = await self.world.worker()

    async def step(self) -> None:
        await self.dice.choices([self.claim, self.end, self.replay, self.discard], [4, 5, 1, 1])[0]()
        self.skip()
        await self.check()

    async def claim(self) -> None:
        while await self.world.promoter.run_once():
            pass
        for run in await self.hand.claim(self.dice.randint(1, 4)):
            assert run.id not in self.held
            self.held[run.id] = run
            assert run.id not in self.began, "a run was let go twice"
            self.began.add(run.id)

    async def end(self) -> None:
        """Some of what is held, in one batch for each kind of end."""
        chosen = self.dice.sample(sorted(self.held), self.dice.randint(0, len(self.held)))
        ends = {run: self.dice.choices(list(ENDINGS), [6, 3, 1, 1])[0] for run in chosen}
        for how, outcome in ENDINGS.items():
            batch = [self.held.pop(run) for run in chosen if ends[run] is how]
            if batch:
                done = self.hand.settle(batch) if outcome is None else self.hand.conclude(batch, outcome)
                assert await done == len(batch)
        for run, how in ends.items():
            self.past[run] = Past(self.past[run].first or how, how)
            if how is State.DEAD:
                self.dead.add(run)

    async def replay(self) -> None:
        if self.dead:
            run = self.dead.pop()
            assert (await replay(self.world, run)).run_ids
            self.past[run] = Past(self.past[run].first, None)
            self.began.discard(run)

    async def discard(self) -> None:
        if self.dead:
            run = self.dead.pop()
            assert (await discard(self.world, run)).run_ids
            self.past[run] = Past(self.past[run].first, State.DISCARDED)

    def skip(self) -> None:
        for run in self.runs:
            if self.verdict(run) is Verdict.SKIPPED:
                self.past[run] = Past(State.SKIPPED, State.SKIPPED)

    def verdict(self, run: int) -> Verdict:
        return verdict((edge.when, self.past[edge.parent]) for edge in self.edges if edge.child == run)

    async def check(self) -> None:
        rows = await self.world.sql("SELECT id, state FROM run WHERE id = ANY ($1)", self.runs)
        live = {row["id"]: row["state"] for row in rows}
        for run in self.runs:
            told, last = self.verdict(run), self.past[run].last
            if told is Verdict.WAITS:
                assert live[run] == State.BLOCKED
            elif last is None:
                assert live[run] != State.BLOCKED
            else:
                assert run not in live
                assert State[(await state(self.world, run)).upper()] is last
        going = {run for run in self.runs if self.verdict(run) is Verdict.RUNS and self.past[run].last is None}
        graph = await self.world.sql("SELECT going, ended_at IS NOT NULL AS ended FROM graph_run")
        assert [(row["going"], row["ended"]) for row in graph] in ([], [(len(going), not going)])

    async def finish(self) -> None:
        for _ in range(200):
            await self.claim()
            await self.end()
            self.skip()
            await self.check()
            if not self.held and not await self.world.value(
                "SELECT EXISTS (SELECT FROM run WHERE id > 0 AND state < 2)"
            ):
                break
        while self.dead:
            await self.discard()
            self.skip()
        await self.claim()
        if self.held:
            await self.finish()
            return
        await self.check()
        assert await self.world.count("run") == await self.world.value("SELECT count(*) FROM node WHERE run > 0") == 0


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_ends_how_and_when_the_graph_goes_as_the_rule_says(world: World, seed: int):
    walk = Walk(world, seed)
    await walk.begin(once=seed % 2 == 1)
    for _ in range(25):
        await walk.step()
    sweeper = Sweeper(world.database)
    assert await sweeper.run_once() == 0
    await sweeper.close()
    await walk.finish()


async def test_whoever_moves_up_when_a_graph_is_cancelled_is_heard_of(world: World):
    await Tenants(world.database).set_limit("acme", 1)
    top, _ = await fired(world, {"key": "a", "every": "PT1H"}, {"key": "b", "dependsOn": ["a"]})
    (next_,) = await world.submit(1)
    world.hints.clear()
    await world.graphs.cancel(world.tenant, top)
    assert READY in world.hints
    assert [run.id for run in await (await world.worker()).claim()] == [next_]


@pytest.mark.parametrize("paused", [False, True])
async def test_a_run_that_waits_for_nobody_and_that_nobody_let_go_is_found_and_counted(world: World, paused: bool):
    """Planted: a count that has come to nothing, and nobody was told."""
    _, child = jobs = await make(world, {"key": "a", "every": "PT1H"}, {"key": "b", "dependsOn": ["a"]})
    await world.fire(await world.next_at())
    run = (await runs_of(world, jobs))[child]
    if paused:
        await world.control.pause(world.tenant, child)
    await world.sql("UPDATE foliot.node SET waits = 0 WHERE run = $1", run)
    sweeper = Sweeper(world.database)
    assert [await sweeper.run_once(), await sweeper.run_once()] == [1, 0]
    await sweeper.close()
    await world.promoter.run_once(await world.next_at())
    assert await world.value("SELECT state FROM run WHERE id = $1", run) == (2 if paused else 1)
    if paused:
        await world.resume(child)
        await world.promoter.run_once(await world.next_at())
    hand = await world.worker()
    taken = await hand.claim()
    assert run in {each.id for each in taken}
    assert await hand.settle(taken) == 2
    assert await world.value("SELECT going FROM graph_run") == 0


async def test_what_was_left_behind_does_not_start_before_its_time(world: World):
    jobs = await make(
        world,
        {"key": "a", "scheduleAt": "2126-01-01T00:00:00Z"},
        {"key": "b", "dependsOn": ["a"], "scheduleAt": "2126-01-02T00:00:00Z"},
    )
    run = (await runs_of(world, jobs))[jobs[1]]
    await world.sql("UPDATE foliot.node SET waits = 0 WHERE run = $1", run)
    sweeper = Sweeper(world.database)
    assert await sweeper.run_once() == 1
    await sweeper.close()
    await world.promoter.run_once()
    assert await state(world, run) == "scheduled"


DIAMOND = (
    {"key": "a", "every": "PT1H"},
    {"key": "b", "dependsOn": ["a"]},
    {"key": "c", "dependsOn": ["a"]},
    {"key": "d", "dependsOn": ["b", "c"]},
)


async def test_two_parents_that_end_in_one_batch_let_their_child_go_once(world: World):
    runs = await fired(world, *DIAMOND)
    hand = await world.worker()
    for expected in ([runs[0]], [runs[1], runs[2]], [runs[3]], []):
        taken = await hand.claim()
        assert sorted(run.id for run in taken) == sorted(expected)
        assert await hand.settle(taken) == len(taken)
    assert await world.count("graph_run") == 1
    assert (await world.graphs.read(world.tenant, runs[3])).status == "completed"


@pytest.mark.parametrize("once", [False, True])
async def test_two_parents_that_end_at_once_let_their_child_go_once(world: World, once: bool):
    jobs = [dict(each) for each in DIAMOND]
    if once:
        jobs[0] = {"key": "a", "scheduleAt": "2026-01-01T00:00:00Z"}
        made = await make(world, *jobs)
        runs = [(await runs_of(world, made))[job] for job in made]
        await world.promoter.run_once()
    else:
        runs = await fired(world, *jobs)
    hand, other = await world.worker(), await world.worker()
    await hand.settle(await hand.claim())
    (left,), (right,) = await hand.claim(1), await other.claim(1)
    async with world.unfinished() as line:
        assert await hand.on(line).settle([left]) == 1
        settling = asyncio.create_task(other.settle([right]))
        await world.until_waiting()
    assert await settling == 1
    assert [run.id for run in await hand.claim()] == [runs[3]]


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("deed", ["pause", "cancel"])
async def test_a_child_that_is_paused_or_cancelled_while_its_parent_settles_does_not_start(
    world: World, deed: str, once: bool
):
    own = {"scheduleAt": "2026-01-01T00:00:00Z"} if once else {"every": "PT1H"}
    made = await make(world, {"key": "a", **own}, {"key": "b", "dependsOn": ["a"]})
    await (world.promoter.run_once() if once else world.fire(await world.next_at()))
    hand = await world.worker()
    taken = await hand.claim()
    async with world.unfinished() as line:
        assert await hand.on(line).settle(taken) == 1
        doing = asyncio.create_task(getattr(world.control, deed)(world.tenant, made[1]))
        await world.until_waiting()
    await doing
    await world.promoter.run_once(datetime.now(UTC) + timedelta(days=1))
    assert await hand.claim() == []
    assert await world.value("SELECT count(*) FROM run WHERE job = $1", made[1]) == (deed == "pause")


async def test_a_failure_for_good_blocks_what_waits_for_it_and_says_so_until_it_is_replayed(world: World):
    a, b, c, d = await fired(
        world,
        {"key": "a", "every": "PT1H"},
        {"key": "b", "dependsOn": ["a"]},
        {"key": "c", "dependsOn": ["b"]},
        {"key": "d", "dependsOn": needs(a="failed")},
    )
    hand = await world.worker()
    assert await hand.conclude(await hand.claim(), DEAD) == 1
    assert [await state(world, run) for run in (b, c)] == ["blocked"] * 2
    told = (await world.insights.run(world.tenant, c)).waiting_for
    assert told is not None
    assert encode("run", a) in told
    assert "replay" in told
    assert [tuple(row) for row in await world.sql("SELECT kind, run FROM event")] == [(1, a)]
    graph = await world.graphs.read(world.tenant, c)
    assert [(node.state, node.stuck) for node in graph.nodes] == [
        ("dead", msgspec.UNSET), ("blocked", True), ("blocked", True), ("ready", msgspec.UNSET)
    ]  # fmt: skip
    assert await hand.settle(await hand.claim()) == 1  # what waits for the failure goes on
    assert (await world.graphs.read(world.tenant, a)).status == "failed"
    await replay(world, a)
    for run in (a, b, c):
        taken = await hand.claim()
        assert [each.id for each in taken] == [run]
        await hand.settle(taken)
    assert (await world.graphs.read(world.tenant, d)).status == "completed"


async def test_the_next_instant_is_skipped_while_anything_of_the_graph_goes_and_not_after_it_has_failed(world: World):
    made = await make(world, *DIAMOND)
    hand = await world.worker()
    await world.fire(await world.next_at())
    await hand.settle(await hand.claim())
    await world.fire(await world.next_at())
    skips = await world.sql("SELECT job, error FROM history WHERE state = 8 ORDER BY job")
    assert [row["job"] for row in skips] == sorted(made)
    assert {row["error"] for row in skips} == {"the previous run of its graph was still going"}
    assert await hand.conclude(await hand.claim(), DEAD) == 2
    await world.fire(await world.next_at())
    assert await world.value("SELECT count(*) FROM graph_run WHERE ended_at IS NULL") == 1


async def test_a_graph_that_may_overlap_is_fired_beside_itself_and_each_has_its_own_edges(world: World):
    await make(world, {**DIAMOND[0], "overlap": "allow"}, *DIAMOND[1:])
    await world.fire(await world.next_at())
    await world.fire(await world.next_at())
    hand = await world.worker()
    first, second = await hand.claim()
    await hand.settle([first])
    assert {run.scheduled_at for run in await hand.claim()} == {first.scheduled_at}
    assert second.scheduled_at > first.scheduled_at


async def test_a_one_time_job_waits_for_its_parents_and_for_its_instant(world: World):
    soon = datetime.now(UTC) + timedelta(hours=1)
    parent, child = await make(
        world,
        {"key": "a", "scheduleAt": "2026-01-01T00:00:00Z"},
        {"key": "b", "scheduleAt": soon.isoformat(), "dependsOn": ["a"]},
    )
    assert await world.status(child) == "blocked"
    await world.promoter.run_once()
    hand = await world.worker()
    await hand.settle(await hand.claim())
    assert await world.status(child) == "pending"
    await world.promoter.run_once()
    assert await hand.claim() == []
    await world.promoter.run_once(soon + timedelta(seconds=1))
    assert [run.job for run in await hand.claim()] == [child]
    assert await world.status(parent) == "completed"


async def test_a_parent_that_has_completed_counts_and_one_that_is_running_is_waited_for(world: World):
    done, running = await make(
        world, *({"key": key, "scheduleAt": "2026-01-01T00:00:00Z"} for key in ("done", "running"))
    )
    await world.promoter.run_once()
    hand = await world.worker()
    held = {run.job: run for run in await hand.claim()}
    await hand.settle([held[done]])
    (child,) = await make(world, {"key": "c", "dependsOn": ["done", "running"]})
    assert await world.status(child) == "blocked"
    assert await hand.settle([held[running]]) == 1  # claimed before anybody waited for it
    await world.promoter.run_once()
    assert [run.job for run in await hand.claim()] == [child]


async def test_a_parent_that_settles_while_a_child_is_made_is_not_missed(world: World):
    (parent,) = await make(world, {"key": "a", "scheduleAt": "2026-01-01T00:00:00Z"})
    await world.promoter.run_once()
    hand = await world.worker()
    taken = await hand.claim()
    async with world.unfinished() as line:
        await hand.on(line).settle(taken)
        making = asyncio.create_task(make(world, {"key": "b", "dependsOn": ["a"]}))
        await world.until_waiting()
    (child,) = await making
    await world.promoter.run_once()
    assert [run.job for run in await hand.claim()] == [child]
    assert await world.status(parent) == "completed"


async def test_what_can_never_come_is_refused_when_a_job_is_made_to_wait_for_it(world: World):
    await make(world, {"key": "a", "scheduleAt": "2026-01-01T00:00:00Z"})
    await world.promoter.run_once()
    hand = await world.worker()
    await hand.settle(await hand.claim())
    before = await world.count("job")
    with pytest.raises(InvalidField, match="will not fail"):
        await make(world, {"key": "b", "dependsOn": needs(a="failed")})
    assert await world.count("job") == before


async def test_a_dead_worker_keeps_nobody_waiting(world: World):
    runs = await fired(world, *DIAMOND)
    hand, other = await world.worker(), await world.worker()
    await hand.claim()
    await hand.die()
    reaper = Reaper(world.database)
    await reaper.run_once()
    await reaper.close()
    await other.settle(await other.claim())
    assert sorted(run.id for run in await other.claim()) == sorted(runs[1:3])


async def test_a_paused_node_holds_its_graph_and_a_paused_root_its_trigger(world: World):
    made = await make(world, *DIAMOND)
    hand = await world.worker()
    await world.control.pause(world.tenant, made[1])
    at = await world.next_at()
    await world.fire(at)
    await hand.settle(await hand.claim())
    assert [run.job for run in await hand.claim()] == [made[2]]
    await world.resume(made[1])
    await world.promoter.run_once(at)
    assert [run.job for run in await hand.claim()] == [made[1]]
    await world.control.pause(world.tenant, made[0])
    assert await world.count("subscription") == 0
    await world.resume(made[0])
    assert await world.value("SELECT count(*) FROM subscription WHERE head = $1", made[0]) == 4


async def test_a_root_that_is_moved_takes_its_graph_along_and_edges_may_change(world: World):
    made = await make(world, *DIAMOND)
    await world.change(made[0], every="PT2H")
    assert await world.value("SELECT count(DISTINCT schedule) FROM subscription WHERE until = 'infinity'") == 1
    await world.change(made[3], dependsOn=needs(b="done"))
    await world.fire(await world.value("SELECT max(next_at) FROM schedule"))
    hand = await world.worker()
    await hand.settle(await hand.claim())
    held = {run.job: run for run in await hand.claim()}
    await hand.conclude([held[made[1]]], DEAD)
    assert [run.job for run in await hand.claim()] == [made[3]]
    with pytest.raises(Cycle, match=r"b → d → b|d → b → d"):
        await world.change(made[1], dependsOn=["a", "d"])
    await world.change(made[3], dependsOn=[])
    assert (await world.insights.job(world.tenant, "acme", made[3])).schedule_type == "on_demand"


async def test_a_job_that_others_wait_for_is_not_just_cancelled(world: World):
    made = await make(world, *DIAMOND)
    with pytest.raises(Conflict, match="'d'"):
        await world.control.cancel(world.tenant, made[1])
    for job in reversed(made):
        await world.control.cancel(world.tenant, job)
    assert await world.count("subscription") == 0


async def test_a_cancelled_graph_ends_what_has_not_begun(world: World):
    runs = await fired(world, *DIAMOND)
    graph = await world.graphs.cancel(world.tenant, runs[2])
    assert graph.status == "cancelled"
    assert {node.state for node in graph.nodes} == {"cancelled"}
    assert await world.value("SELECT count(*) FROM node WHERE run > 0") == 0


async def test_nobody_depends_on_a_job_of_another_tenant(world: World):
    await world.job(tenant=await world.another_tenant(), key="theirs")
    before = await world.count("job")
    with pytest.raises(InvalidField, match="there is no job 'theirs'"):
        await make(world, {"key": "mine", "dependsOn": ["theirs"]})
    assert await world.count("job") == before
