"""Who is cut off between a statement and the end of its transaction is hung up on, and nobody else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta

import asyncpg
import psycopg
import pytest

from foliot.services.patrol import Patrol
from world import World

TAKE = "UPDATE foliot.tenant SET weight = weight WHERE id = $1"
FREE = "SELECT count(*) FROM (SELECT FROM tenant WHERE id = $1 FOR UPDATE SKIP LOCKED) AS free"
SILENT = "SELECT state = 'active' AND wait_event = 'ClientRead' FROM pg_stat_activity WHERE pid = $1"


@pytest.fixture
def patrol(world: World) -> Patrol:
    return Patrol(world.database, timedelta(0))


@pytest.mark.parametrize(("name", "count"), [("foliot", 1), ("foliot handler", 1), ("psql", 0)])
async def test_a_statement_whose_end_does_not_come_loses_its_locks(
    world: World, dsn: str, patrol: Patrol, name: str, count: int
):
    with closing(psycopg.connect(dsn, autocommit=True, application_name=name)) as stuck:
        stuck.pgconn.enter_pipeline_mode()
        stuck.pgconn.send_query_params(TAKE.encode(), [str(world.tenant).encode()])
        stuck.pgconn.send_flush_request()  # and no Sync
        while stuck.pgconn.flush():
            pass
        await world.until(SILENT, stuck.info.backend_pid)
        assert await world.value(FREE, world.tenant) == 0
        assert await patrol.run_once() == count
        await world.until(f"SELECT count(*) = {1 - count} FROM pg_stat_activity WHERE pid = $1", stuck.info.backend_pid)
        assert await world.value(FREE, world.tenant) == count


async def test_who_has_time_outs_of_its_own_is_left_alone(world: World, dsn: str, patrol: Patrol):
    """Between two statements, in the middle of one, waiting for a lock, copying."""
    named = {"server_settings": {"application_name": "foliot"}}
    first, second, third = [await asyncpg.connect(dsn, **named) for _ in range(3)]
    ended = asyncio.Event()

    async def rows() -> AsyncIterator[bytes]:
        await ended.wait()
        yield b""

    async with first.transaction():
        await first.execute(TAKE, world.tenant)
        waiting = asyncio.create_task(second.execute(TAKE, world.tenant))
        copying = asyncio.create_task(
            third.copy_to_table("knock", schema_name="foliot", columns=["slot"], source=rows())
        )
        await world.until_waiting()
        await world.until(SILENT, third.get_server_pid())
        assert await patrol.run_once() == 0
    ended.set()
    await waiting
    await copying
    for each in (first, second, third):
        await each.close()
