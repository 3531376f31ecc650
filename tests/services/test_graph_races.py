"""Two at one graph at the same moment: whoever comes second finds what the first has done."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from burying import DEAD, replay
from foliot.domain.errors import Conflict
from foliot.domain.outcome import Outcome
from foliot.domain.states import State
from foliot.services.control import Control
from foliot.services.fire import Firer
from foliot.store import fleet, letters
from foliot.store.database import Line
from foliot.store.dispatch import Claimed
from services.racing import control, done_or_waiting
from services.test_graphs import DIAMOND, make, needs
from world import Hand, World

LEFT_OUT = "the job was paused or cancelled"
TOP, LEFT, RIGHT, JOIN = range(4)


async def cancel_the_last(owner: Control, tenant: int, jobs: Sequence[int]) -> None:
    await owner.cancel(tenant, jobs[JOIN])


async def pause_one_in_between(owner: Control, tenant: int, jobs: Sequence[int]) -> None:
    await owner.pause(tenant, jobs[LEFT])


async def pause_the_first(owner: Control, tenant: int, jobs: Sequence[int]) -> None:
    await owner.pause(tenant, jobs[TOP])


DEEDS: dict[Callable[..., Awaitable[None]], tuple[dict[int, str], dict[int, str]]] = {
    cancel_the_last: ({JOIN: "skipped"}, {JOIN: "cancelled"}),
    pause_one_in_between: ({LEFT: "blocked", JOIN: "blocked"}, {LEFT: "blocked", JOIN: "blocked"}),
    pause_the_first: (dict.fromkeys(range(4), "skipped"), dict.fromkeys(range(4), "blocked")),
}
"""What becomes of the runs of an instant that is still to be fired, if the deed is first, and if the firing is: the
others succeed."""


async def half_fired(world: World) -> None:
    """Let the next instant have come a moment ago, and leave its runs to be made."""
    await world.make_overdue(await world.next_at() - datetime.now(UTC) + timedelta(seconds=1))
    assert await world.advance() == 1


async def fire_on(world: World, line: Line) -> None:
    """Make the runs of what is open, on an unfinished line."""
    firer = Firer(world.database)
    firer._line, own = line, firer._line
    assert await firer._make_runs() == 1
    firer._line = own
    await firer.close()


async def play_to_the_end(world: World) -> None:
    hand = await world.worker()
    while taken := await hand.claim():
        assert await hand.settle(taken) == len(taken)
        await world.promoter.run_once(datetime.now(UTC) + timedelta(days=1))


async def ends(world: World, jobs: Sequence[int]) -> list[tuple[str, str | None]]:
    """How the only run of each job stands, and what is said of it."""
    rows = await world.sql(
        "SELECT job, id AS run FROM run WHERE id > 0 UNION SELECT job, run FROM history WHERE state > 3"
    )
    run_of = {row["job"]: row["run"] for row in rows}
    assert len(rows) == len(run_of), "an instant has one outcome"
    views = [await world.insights.run(world.tenant, run_of[job]) for job in jobs]
    return [(view.state, view.error_message) for view in views]


@pytest.mark.parametrize("first", ["deed", "firing"])
@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
async def test_a_job_that_is_stopped_while_its_graph_fires_does_not_start(
    world: World, deed: Callable[..., Awaitable[None]], first: str
):
    jobs = await make(world, *DIAMOND)
    await half_fired(world)
    async with world.unfinished() as line:
        if first == "deed":
            await deed(control(world, await line.connection()), world.tenant, jobs)
            rival = asyncio.ensure_future(world.fire())
        else:
            await fire_on(world, line)
            rival = asyncio.ensure_future(deed(world.control, world.tenant, jobs))
        await done_or_waiting(world, rival)
    await rival
    await world.fire()  # if it had no patience
    await play_to_the_end(world)
    expected = DEEDS[deed][first == "firing"]
    found = await ends(world, jobs)
    assert [state for state, _ in found] == [expected.get(place, "succeeded") for place in range(4)]
    assert all(reason == LEFT_OUT for state, reason in found if state == "skipped")


async def test_who_waited_for_a_job_that_was_cancelled_before_its_instant_was_fired_is_told(world: World):
    """Two edits later than an instant that is still to be fired, which has the edges of before."""
    jobs = await make(
        world,
        {"key": "a", "every": "PT1H"},
        {"key": "b", "dependsOn": ["a"]},
        {"key": "c", "dependsOn": ["b"]},
        {"key": "d", "dependsOn": needs(b="done")},
    )
    await half_fired(world)
    for job in jobs[2:]:
        await world.change(job, dependsOn=["a"])
    await world.control.cancel(world.tenant, jobs[1])
    await world.fire()
    await play_to_the_end(world)
    (_, (b, why), (c, behind), d) = await ends(world, jobs)
    assert [b, c] == ["skipped", "skipped"]
    assert why == LEFT_OUT
    assert behind is not None
    assert "was skipped" in behind
    assert d[0] == "succeeded", "it waited for any end"
    assert (
        await world.value("SELECT going FROM graph_run")
        == await world.value("SELECT count(*) FROM node WHERE run > 0")
        == 0
    )


async def test_a_first_root_that_left_its_graph_and_was_cancelled_takes_nobodys_instant_along(world: World):
    jobs = await make(
        world,
        {"key": "a", "every": "PT1H"},
        {"key": "b", "every": "PT1H"},
        {"key": "c", "dependsOn": needs(a="done", b="success")},
    )
    await half_fired(world)
    await world.change(jobs[2], dependsOn=["b"])
    await world.control.cancel(world.tenant, jobs[0])
    with pytest.raises(Conflict):
        await world.control.erase(world.tenant, jobs[0])  # nobody would fire the others
    await world.fire()
    await play_to_the_end(world)
    assert await ends(world, jobs) == [("skipped", LEFT_OUT), ("succeeded", None), ("succeeded", None)]
    assert await world.value("SELECT going FROM graph_run") == 0
    await world.control.erase(world.tenant, jobs[0])


async def succeed(hand: Hand, line: Line, run: Claimed) -> None:
    assert await hand.on(line).settle([run]) == 1


async def die(hand: Hand, line: Line, run: Claimed) -> None:
    assert await hand.on(line).conclude([run], DEAD) == 1


async def be_cancelled(hand: Hand, line: Line, run: Claimed) -> None:
    assert await hand.on(line).conclude([run], Outcome.cancelled()) == 1


async def be_lost(hand: Hand, line: Line, run: Claimed) -> None:
    await hand.note_started([run])
    await hand.die()
    await fleet.reap(line)


async def come_back(hand: Hand, line: Line, run: Claimed) -> None:
    """It had died before."""
    assert len(await letters.replay(await line.connection(), run.tenant, {run.id: 1}, "by hand")) == 1


ENDS = (succeed, die, be_cancelled, be_lost, come_back)


@pytest.mark.parametrize("first", ENDS, ids=lambda end: end.__name__)
async def test_two_parents_that_end_at_once_however_they_do_let_their_child_go_once(
    world: World, first: Callable[..., Awaitable[None]], subtests: pytest.Subtests
):
    once = {"delivery": "atMostOnce", "maxRetries": 0}
    _, _, join = await make(
        world,
        {"key": "a", "every": "PT1H", "overlap": "allow", **once},
        {"key": "b", "every": "PT1H", **once},
        {"key": "c", "dependsOn": needs(a="done", b="done")},
    )
    for second in ENDS:
        with subtests.test(second.__name__):
            await world.fire(await world.next_at())
            hand, other, next_ = await world.worker(), await world.worker(), await world.worker()
            (left,), (right,) = await hand.claim(1), await other.claim(1)
            for worker, run, end in ((hand, left, first), (other, right, second)):
                if end is come_back:
                    assert await worker.conclude([run], DEAD) == 1

            async def later(second: Any = second, other: Hand = other, right: Claimed = right) -> None:
                async with world.unfinished() as line:
                    await second(other, line, right)

            async with world.unfinished() as line:
                await first(hand, line, left)
                rival = asyncio.ensure_future(later())
                await done_or_waiting(world, rival)
            await rival
            taken = await next_.claim()
            assert [run.job for run in taken].count(join) == 1
            assert len(taken) == 1 + (first is come_back) + (second is come_back)
            assert await next_.settle(taken) == len(taken)
            assert await world.value("SELECT count(*) FROM graph_run WHERE ended_at IS NULL") == 0


async def test_who_replays_asks_for_jobs_before_it_holds_their_graphs_as_whoever_pauses_one_does(world: World):
    """A job is dead in one run of its graph and waits in another, of which a second letter is replayed meanwhile."""
    job, other, _ = await make(
        world,
        {"key": "a", "every": "PT1H", "overlap": "allow"},
        {"key": "b", "every": "PT1H"},
        {"key": "c", "dependsOn": ["a", "b"]},
    )
    hand, dead = await world.worker(), []
    for dying in (job, other):
        await world.fire(await world.next_at())
        taken = {run.job: run for run in await hand.claim()}
        assert await hand.conclude([taken[dying]], DEAD) == 1
        dead.append(taken[dying].id)
    async with world.unfinished() as line:
        await (await line.connection()).execute(
            "SELECT FROM graph_run WHERE id = (SELECT graph FROM node WHERE run = $1) FOR UPDATE", dead[1]
        )
        replaying = asyncio.ensure_future(replay(world, *dead))
        await done_or_waiting(world, replaying)
        pausing = asyncio.ensure_future(world.control.pause(world.tenant, job))
        await world.until_waiting(2)
    assert len((await replaying).run_ids) == 2
    await pausing
    assert await world.value("SELECT state FROM run WHERE id = $1", dead[0]) == State.BLOCKED
