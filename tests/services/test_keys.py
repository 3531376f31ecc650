"""Idempotency keys: one creates once, also when midnight, or a clock that is set back, lies between two calls."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from clocked import BEGIN, Time
from foliot.services.submit import Key, Submitter
from foliot.services.upkeep import Housekeeper
from foliot.store.migrate import migrate, shipped
from foliot.store.submission import Answer, NewRun, Once, remember
from world import NOOP, World

DAY = 86_400
FIRST = Answer(b"same", b"first")


async def _remember(world: World, key: str = "once", body: bytes = b"second") -> bytes | None:
    """What a call with this key gets to hear that was said before."""
    async with world.database.transaction() as connection:
        known = await remember(connection, [Once(world.tenant, key, Answer(b"same", body))])
    return None if not known else known[world.tenant, key].body


async def _keep_house(world: World) -> float:
    """Keep house once; in how many seconds the housekeeper will come again."""
    housekeeper = Housekeeper(world.database)
    await housekeeper.run_once()
    await housekeeper.close()
    return await housekeeper.pause()


async def _open_leaf(world: World) -> int:
    return await world.value("SELECT leaf FROM key_leaf WHERE closed_at IS NULL")


async def _leaves(world: World) -> list[int]:
    rows = await world.sql(
        "SELECT substr(inhrelid::regclass::text, 13)::int AS leaf FROM pg_inherits"
        " WHERE inhparent = 'idempotency'::regclass ORDER BY 1"
    )
    return [row["leaf"] for row in rows]


@pytest.fixture
async def evening(clocked_world: World, time: Time) -> World:
    """A second before midnight."""
    await time.jumps(DAY // 2 - 1)
    return clocked_world


@pytest.mark.parametrize("commits", [True, False])
async def test_a_call_before_midnight_and_one_after_it_create_once(evening: World, time: Time, *, commits: bool):
    connection = await evening.database.line().connection()
    transaction = connection.transaction()
    await transaction.start()
    assert await remember(connection, [Once(evening.tenant, "once", FIRST)]) == {}
    await time.passes(2)
    assert await _keep_house(evening) < 5  # while the first is under way the day cannot turn: soon again
    assert await _open_leaf(evening) == 1
    second = asyncio.create_task(_remember(evening))
    await evening.until_waiting()
    await (transaction.commit() if commits else transaction.rollback())
    assert await second == (b"first" if commits else None)
    await connection.close()
    await _keep_house(evening)
    assert await _open_leaf(evening) == 2
    assert await _remember(evening, body=b"third") == (b"first" if commits else b"second")
    assert await evening.count("idempotency") == 1


async def test_a_call_that_comes_while_the_day_turns_goes_into_the_new_leaf_and_still_finds_the_old_one(
    evening: World, time: Time
):
    await _remember(evening, body=b"first")
    await time.passes(2)
    async with evening.unfinished() as turning:
        await turning.execute("SELECT turn_key_leaf()")
        waiting = [asyncio.create_task(_remember(evening, key)) for key in ("once", "other")]
        await evening.until_waiting(2)
    assert await asyncio.gather(*waiting) == [b"first", None]
    rows = await evening.sql("SELECT key, leaf FROM idempotency ORDER BY leaf")
    assert [tuple(row) for row in rows] == [("once", 1), ("other", 2)]


@pytest.mark.parametrize("jump", [-2, -3_600, -3 * DAY])
async def test_a_clock_that_is_set_back_makes_no_key_create_twice(evening: World, time: Time, jump: int):
    await _remember(evening, "before", b"first")
    await time.passes(2)
    await _keep_house(evening)
    await _remember(evening, "after", b"first")
    await time.jumps(jump)
    await _keep_house(evening)
    assert await _remember(evening, "before") == b"first"
    assert await _remember(evening, "after") == b"first"


async def test_a_leaf_that_a_wrong_clock_opened_is_left_when_the_clock_is_right_again(evening: World, time: Time):
    await time.jumps(365 * DAY)
    await _keep_house(evening)
    await time.jumps(-365 * DAY)
    await _keep_house(evening)
    assert await _open_leaf(evening) == 3


async def test_two_processes_and_a_turning_day_create_every_key_once(evening: World, time: Time):
    """Twenty-five midnights, each in the middle of two calls with one key."""
    new = NewRun(await evening.specs.intern(evening.tenant, NOOP), b"{}")
    twin, housekeeper = Submitter(evening.database, evening.hints.append), Housekeeper(evening.database)
    task = asyncio.create_task(twin.run())
    for number in range(25):
        key = Key(f"key {number}", evening.tenant, b"same", lambda ids: b"%d" % ids[0])
        await time.passes(DAY)
        calls = [evening.submitter.submit([new], key), housekeeper.run_once(), twin.submit([new], key)]
        first, _, second = await asyncio.gather(*calls)
        (run,) = [*first.ids, *second.ids]
        assert first.repeated == b"%d" % run or second.repeated == b"%d" % run
        assert (await twin.submit([new], key)).repeated == b"%d" % run
    assert await evening.count("run") == 25
    assert await _open_leaf(evening) > 20
    task.cancel()
    await asyncio.wait([task])
    await housekeeper.close()


async def test_leaves_are_made_ahead_and_dropped_whole_when_every_key_in_them_is_a_day_old(evening: World, time: Time):
    await _remember(evening, body=b"first")
    held = [await _leaves(evening)]
    for hours in (1, 23, 2, 24):
        await time.passes(hours * 3_600)
        await _keep_house(evening)
        held.append(await _leaves(evening))
    # at 23:59:59, 00:59:59, 23:59:59, 01:59:59 and 01:59:59
    assert held == [[1, 2], [1, 2], [1, 2, 3], [2, 3], [3, 4]]
    assert await _remember(evening) is None


async def test_a_key_is_known_for_a_day_at_least(evening: World, time: Time):
    await _remember(evening, body=b"first")
    for hours in (1, 22, 0.9):
        await time.passes(hours * 3_600)
        await _keep_house(evening)
        assert await _remember(evening) == b"first"
    assert await evening.value("SELECT created_at FROM idempotency") < BEGIN + timedelta(hours=12)


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_key_is_refused_where_an_old_snapshot_could_hide_the_first_answer(world: World, isolation: str):
    async with world.database.connection() as connection:
        with pytest.raises(asyncpg.FeatureNotSupportedError, match="isolation"):
            async with connection.transaction(isolation=isolation):
                await remember(connection, [Once(world.tenant, "once", FIRST)])


async def test_keys_that_were_kept_before_the_migration_are_still_known(empty_dsn: str):
    before = [each for each in shipped() if each.name < "0009"]
    await migrate(empty_dsn, before)
    connection = await asyncpg.connect(empty_dsn, server_settings={"search_path": "foliot"})
    await connection.execute("INSERT INTO idempotency VALUES (1, 'once', 'same', 'first')")
    await migrate(empty_dsn)
    assert await remember(connection, [Once(1, "once", FIRST)]) == {(1, "once"): FIRST}
    await connection.close()
