"""Submission: acknowledged means on disk, many calls share a commit, and one bad call fails alone."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from foliot.domain.errors import InvalidField, Unavailable
from foliot.domain.fairness import Priority, step
from foliot.domain.limits import Concurrency
from foliot.domain.spec import FunctionHandler, Spec
from foliot.domain.states import State
from foliot.services import submit
from foliot.services.submit import Accepted, Key
from foliot.store.recovery import is_contended
from foliot.store.statements import SQL
from foliot.store.submission import NewRun
from world import NOOP, PATIENCE, World


async def _new(world: World, **fields) -> NewRun:
    return NewRun(await world.specs.intern(world.tenant, NOOP), b"{}", **fields)


def _key(world: World, text: str = "once", fingerprint: bytes = b"same") -> Key:
    return Key(text, world.tenant, fingerprint, lambda ids: b"%d" % ids[0])


async def test_what_was_acknowledged_is_there_for_everybody(world: World, dsn: str):
    (run,) = await world.submit()
    other = await asyncpg.connect(dsn)
    assert await other.fetchval("SELECT state FROM foliot.run WHERE id = $1", run) == State.READY
    assert await other.fetchval("SELECT count(*) FROM foliot.ready WHERE run = $1", run) == 1
    await other.close()


async def test_calls_that_arrive_together_share_a_commit(world: World):
    new = await _new(world)
    await world.submitter.submit([new])
    accepted = await asyncio.gather(*[world.submitter.submit([new]) for _ in range(500)])
    assert len({answer.ids[0] for answer in accepted}) == 500
    assert await world.value("SELECT count(DISTINCT xmin::text) FROM run WHERE id > 0") <= 4


async def test_runs_get_rising_ids_and_ranks_in_the_order_of_the_calls(world: World):
    new = await _new(world)
    accepted = await asyncio.gather(*[world.submitter.submit([new, new]) for _ in range(50)])
    ids = [run for answer in accepted for run in answer.ids]
    assert ids == sorted(ids)
    assert [run.id for run in await (await world.worker()).claim()] == ids


async def test_a_run_that_comes_alone_is_written_like_many(world: World):
    ids = [*await world.submit(1), *await world.submit(2), *await world.submit(1)]
    assert ids == sorted(ids)
    rows = await world.sql("SELECT * FROM run JOIN ready ON ready.run = run.id AND ready.rank = run.rank WHERE id > 0")
    by_id = {row["id"]: dict(row) for row in rows}
    ranks = [by_id[id_]["rank"] for id_ in ids]
    assert ranks == [step(1, Priority.NORMAL) * place for place in (1, 2, 3, 4)]
    assert await world.value("SELECT last FROM flow") == ranks[-1]
    varying = ("id", "run", "rank", "scheduled_at", "due_at")
    alone, together = ({name: by_id[id_][name] for name in by_id[id_] if name not in varying} for id_ in ids[:2])
    assert alone == together


async def test_a_run_that_comes_alone_is_on_disk_when_it_is_acknowledged(world: World):
    await world.submit()
    before = await world.value("SELECT pg_current_wal_insert_lsn()")
    await world.submit()
    assert await world.value("SELECT pg_current_wal_flush_lsn() > $1", before)


async def test_a_run_that_comes_alone_waits_for_a_rank_as_long_as_others_do(world: World):
    await world.submit()
    async with world.unfinished() as rival:
        await rival.execute("SELECT FROM flow FOR UPDATE")
        submitting = asyncio.ensure_future(world.submit())
        await world.until(
            "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND left(query, 200) = $1",
            SQL["reserve"][:200],
        )
    assert len(await submitting) == 1
    assert await world.count("ready") == 2


async def test_one_bad_call_fails_alone(world: World):
    good, bad = await _new(world), await _new(world, delay=timedelta(days=999_999_999))
    calls = [world.submitter.submit([bad if number == 7 else good]) for number in range(20)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [number for number, answer in enumerate(answers) if not isinstance(answer, Accepted)] == [7]
    assert not isinstance(answers[7], Unavailable)
    assert await world.count("run") == await world.count("ready") == 19


async def test_a_call_that_cannot_even_be_sent_fails_alone_too(world: World):
    good, bad = await _new(world), (await _new(world))._replace(payload="text")
    calls = [world.submitter.submit([bad if number == 3 else good]) for number in range(6)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(answer, Accepted) for answer in answers] == [number != 3 for number in range(6)]
    assert not isinstance(answers[3], Unavailable)


async def test_a_batch_of_ten_thousand_is_written_whole(world: World):
    ids = await world.submit(10_000)
    assert len(set(ids)) == 10_000
    assert await world.count("run") == await world.count("ready") == 10_000


async def test_a_batch_with_one_bad_run_is_not_written_at_all(world: World):
    good, bad = await _new(world), await _new(world, delay=timedelta(days=999_999_999))
    with pytest.raises(asyncpg.PostgresError):
        await world.submitter.submit([good] * 9_999 + [bad])
    assert await world.count("run") == await world.count("ready") == 0


async def test_a_call_that_mixes_now_and_later_is_written_whole(world: World):
    now, soon = await _new(world), await _new(world, delay=timedelta(seconds=30))
    later = await _new(world, due=datetime.now(UTC) + timedelta(hours=1))
    await world.submitter.submit([now, soon, later])
    assert (await world.count("ready"), await world.count("run"), await world.count("timer")) == (1, 2, 1)
    assert sorted(world.hints) == ["foliot_due", "foliot_ready"]


@pytest.mark.parametrize(("delay", "table"), [(0, "run"), (50, "run"), (70, "timer"), (-3_600, "run")])
async def test_runs_due_within_a_minute_are_kept_apart_from_those_due_later(world: World, delay: int, table: str):
    (run,) = await world.submit(delay=timedelta(seconds=delay))
    assert await world.value(f"SELECT count(*) FROM {table} WHERE id = $1", run) == 1
    assert await world.count("run") + await world.count("timer") == 1
    assert await world.count("ready") == 0


async def test_fifty_calls_with_one_key_create_once(world: World):
    new = await _new(world)
    answers = await asyncio.gather(*[world.submitter.submit([new], _key(world)) for _ in range(50)])
    (run,) = [answer.ids[0] for answer in answers if answer.ids]
    assert {answer.repeated for answer in answers} == {None, b"%d" % run}
    assert await world.count("run") == 1


async def test_a_key_is_known_to_every_process(world: World):
    new = await _new(world)
    first = await world.submitter.submit([new], _key(world))
    twin = type(world.submitter)(world.database, world.hints.append)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(twin.run())
        assert (await twin.submit([new], _key(world))).repeated == b"%d" % first.ids[0]
        task.cancel()
    assert await world.count("run") == 1


async def test_a_key_that_stood_for_another_request_is_refused_alone(world: World):
    new = await _new(world)
    calls = [world.submitter.submit([new], _key(world, fingerprint=mark)) for mark in (b"a", b"b", b"a")]
    first, refused, repeated = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(refused, InvalidField)
    assert repeated.repeated == b"%d" % first.ids[0]
    assert await world.count("run") == 1


async def test_the_same_key_of_another_tenant_is_another_key(world: World):
    globex = await world.another_tenant()
    new = await _new(world)
    theirs = Key("once", globex, b"same", lambda ids: b"theirs")
    await asyncio.gather(world.submitter.submit([new], _key(world)), world.submitter.submit([new], theirs))
    assert await world.count("run") == 2


async def test_a_call_waits_briefly_for_a_rival_with_the_same_key_and_is_then_sent_away(world: World):
    new = await _new(world)
    async with world.unfinished() as rival:
        await rival.run("remember", [world.tenant], ["once"], [b"same"], [b"first"])
        with pytest.raises(Unavailable, match="Idempotency-Key"):
            await world.submitter.submit([new], _key(world))
    assert (await world.submitter.submit([new], _key(world))).repeated == b"first"
    assert await world.count("run") == 0


@pytest.mark.parametrize("gives_way", [True, False])
async def test_a_call_that_others_stand_in_the_way_of_is_tried_again_and_sent_away_in_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch, gives_way: bool
):
    limited = Spec(handler=FunctionHandler("noop"), concurrency=Concurrency(5))
    await world.submit(spec=limited)
    failures = asyncio.Event()

    def noted(error: BaseException) -> bool:
        failures.set()
        return is_contended(error)

    monkeypatch.setattr(submit, "is_contended", noted)
    async with world.unfinished() as rival:
        await rival.execute("SELECT FROM flow FOR UPDATE")
        call = asyncio.ensure_future(world.submit(2, limited))
        await asyncio.wait_for(failures.wait(), PATIENCE)
        if not gives_way:
            with pytest.raises(Unavailable, match="too long"):
                await call
    if gives_way:
        await call
    assert await world.count("run") == 1 + 2 * gives_way


async def test_a_database_that_goes_away_makes_calls_unavailable_until_it_is_back(world: World):
    new = await _new(world)
    await world.submitter.submit([new])
    async with world.unfinished() as rival:
        await rival.execute("LOCK TABLE run")
        calls = [asyncio.ensure_future(world.submitter.submit([new])) for _ in range(3)]
        await world.until_waiting()
        await world.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        answers = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(answer) for answer in answers} == {Unavailable}
    assert "Idempotency-Key" in answers[0].hint
    await world.submitter.submit([new])
    assert await world.count("run") == 2


async def test_callers_that_still_wait_when_the_submitter_stops_are_told(world: World):
    submitter = type(world.submitter)(world.database, world.hints.append)
    task = asyncio.create_task(submitter.run())
    async with world.unfinished() as rival:
        await rival.execute("LOCK TABLE run")
        calls = [asyncio.ensure_future(submitter.submit([await _new(world)])) for _ in range(2)]
        await world.until_waiting()
        task.cancel()
        await asyncio.wait([task, *calls])
    assert [call.cancelled() for call in calls] == [True, True]
