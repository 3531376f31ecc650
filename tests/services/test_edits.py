"""Edits of recurring jobs: instants up to the edit belong to the old definition, later ones to the new."""

import asyncio
from datetime import timedelta

import pytest

from editing import changed
from foliot.domain.errors import Conflict
from foliot.domain.states import State
from foliot.services.control import definitions
from foliot.store.reading import JobRow
from world import World

DAY = timedelta(days=1)


async def _change(world: World, job: int, **fields):
    return await world.control.change(world.tenant, job, changed(**fields))


async def _payloads(world: World):
    rows = await world.sql("SELECT scheduled_at, payload FROM run WHERE id > 0 ORDER BY 1")
    return [(row["scheduled_at"], bytes(row["payload"])) for row in rows]


async def test_instants_up_to_the_edit_follow_the_old_definition_though_they_fire_later(world: World):
    job = await world.job_id(every="PT24H", overlap="allow", payload=1)
    await world.make_overdue(by=DAY)
    late = await world.next_at()
    await _change(world, job, payload=2)
    await world.fire(late)
    await world.fire(late + DAY)
    assert await _payloads(world) == [(late, b"1"), (late + DAY, b"2")]


async def test_an_edit_in_mid_fire_does_not_touch_the_instant_under_way(world: World):
    job = await world.job_id(every="PT24H", payload=1)
    await world.make_overdue(by=DAY)
    late = await world.next_at()
    await world.advance(late)
    await _change(world, job, payload=2)
    await world.firer._make_runs()
    assert await _payloads(world) == [(late, b"1")]


async def test_a_new_recurrence_takes_over_where_the_old_one_ends(world: World):
    job = await world.job_id(every="PT24H", overlap="allow")
    await world.make_overdue(by=DAY)
    late = await world.next_at()
    await _change(world, job, every="PT48H")
    rows = {row["key"]: row["next_at"] for row in await world.sql("SELECT key, next_at FROM schedule")}
    new = next(at for key, at in rows.items() if "48" in key or "2D" in key)
    for at in sorted({late, late + DAY, late + 2 * DAY, new}):
        await world.fire(at)
    fired = [at for at, _ in await _payloads(world)]
    assert fired == [late, new]


async def test_a_recurring_job_that_becomes_a_job_on_demand_fires_no_more(world: World):
    job = await world.job_id(every="PT24H")
    at = await world.next_at()
    await _change(world, job, every=None)
    await world.fire(at)
    assert await world.count("run") == 0
    assert (await world.insights.job(world.tenant, "acme", job)).schedule_type == "on_demand"


async def test_a_job_on_demand_that_becomes_recurring_fires(world: World):
    job = await world.job_id(onDemand=True)
    await _change(world, job, every="PT24H")
    await world.fire(await world.next_at())
    assert await world.count("run") == 1


async def test_a_pause_also_holds_what_an_earlier_definition_still_owned(world: World):
    job = await world.job_id(every="PT24H", payload=1)
    await world.make_overdue(by=DAY)
    late = await world.next_at()
    await _change(world, job, payload=2)
    await world.control.pause(world.tenant, job)
    await world.fire(late)
    assert await world.count("run") == 0
    assert await world.value("SELECT array_agg(state) FROM history") == [State.SKIPPED]


async def test_instants_of_a_pause_are_nobodys_and_those_after_the_resume_fire(world: World):
    job = await world.job_id(every="PT24H", overlap="allow")
    at = await world.next_at()
    await world.control.pause(world.tenant, job)
    await world.fire(at)
    assert await world.count("run") == 0
    await world.resume(job)
    await world.sql("UPDATE subscription SET after = $1", at)
    await world.fire(at + DAY)
    assert [when for when, _ in await _payloads(world)] == [at + DAY]


async def test_a_paused_job_may_be_edited_and_goes_on_as_edited(world: World):
    job = await world.job_id(every="PT24H", payload=1)
    await world.control.pause(world.tenant, job)
    await _change(world, job, payload=2)
    assert await world.status(job) == "paused"
    await world.fire(await world.next_at())
    assert await world.count("run") == 0
    await world.resume(job)
    await world.fire(await world.next_at())
    assert [payload for _, payload in await _payloads(world)] == [b"2"]


async def test_pausing_and_resuming_twice_changes_nothing_more(world: World):
    job = await world.job_id(every="PT24H")
    first = await world.control.pause(world.tenant, job)
    assert (await world.control.pause(world.tenant, job)).version == first.version
    opened = await world.resume(job)
    assert (await world.resume(job)).version == opened.version
    await world.fire(await world.next_at())
    assert await world.count("run") == 1


async def test_two_edits_while_the_clock_stands_before_the_cursor_own_no_instant_twice(world: World):
    job = await world.job_id(every="PT24H", overlap="allow", payload=1)
    at = await world.next_at()
    await world.advance(at)  # by a clock that ran ahead; the firing is still open
    await _change(world, job, payload=2)
    await _change(world, job, payload=3)
    await world.fire(at + DAY)
    assert await _payloads(world) == [(at, b"1"), (at + DAY, b"3")]


async def test_two_edits_that_swap_schedules_do_not_deadlock(world: World):
    one, other = await world.job_id(every="PT24H"), await world.job_id(every="PT48H")
    for _ in range(5):
        await asyncio.gather(_change(world, one, every="PT48H"), _change(world, other, every="PT24H"))
        await asyncio.gather(_change(world, one, every="PT24H"), _change(world, other, every="PT48H"))
    assert await world.count("schedule") == 2


async def test_an_edit_locks_schedules_in_the_order_of_their_ids(world: World):
    """One that is locked out of turn, because it was looked up, makes swapping edits deadlock."""
    one, _ = await world.job_id(every="PT24H"), await world.job_id(every="PT48H")
    lower, higher = [row["id"] for row in await world.sql("SELECT id FROM schedule ORDER BY id")]
    async with world.unfinished() as owner:
        await owner.run("lock_schedules", [lower])
        changing = asyncio.create_task(_change(world, one, every="PT48H"))
        await world.until_waiting()
        assert await world.sql("SELECT FROM schedule WHERE id = $1 FOR UPDATE SKIP LOCKED", higher)
    await changing


async def test_an_edit_that_others_overtake_is_made_again_upon_theirs(world: World):
    job = await world.job_id(every="PT24H", payload=1, labels={"a": "1"})
    overtaken = 0

    def edit(row: JobRow):
        nonlocal overtaken
        overtaken += 1
        return changed(payload=row.version)(row)

    async with world.unfinished() as rival:
        await rival.execute("UPDATE job SET version = version + 1, name = 'theirs' WHERE id = $1", job)
        changing = asyncio.create_task(world.control.change(world.tenant, job, edit))
        await world.until_waiting()
    row = await changing
    assert (overtaken, row.name, row.version, row.payload) == (2, "theirs", 3, b"2")


async def test_an_edit_that_is_overtaken_again_and_again_gives_up(world: World, monkeypatch: pytest.MonkeyPatch):
    job = await world.job_id(every="PT24H")

    replaced = definitions.replace

    async def overtake(*arguments):
        await world.sql("UPDATE job SET version = version + 1 WHERE id = $1", job)
        return await replaced(*arguments)

    monkeypatch.setattr(definitions, "replace", overtake)
    with pytest.raises(Conflict):
        await world.control.change(world.tenant, job, changed())
