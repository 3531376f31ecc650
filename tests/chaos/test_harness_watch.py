"""When a worker is worth a strike, when others have what it held, who is left standing, and who never comes up."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import asyncpg
import pytest

from chaos import topology
from chaos.places import Places
from chaos.site import free_ports
from chaos.topology import Topology
from chaos.watch import Watch
from foliot.kit.postgres import PostgresServer

PID = 4711


async def test_a_worker_is_at_work_while_it_holds_claims_and_overtaken_when_they_are_gone(dsn: str):
    connection = await asyncpg.connect(dsn)
    watch = Watch(cast("PostgresServer", SimpleNamespace(dsn=dsn)))

    async def seen(*statements: str) -> tuple[bool, bool]:
        for statement in statements:
            await connection.execute(statement)
        await watch._look(connection)
        return watch.at_work(PID), watch.overtaken(PID)

    assert await seen() == (False, False)
    assert await seen(f"INSERT INTO foliot.worker (id, name) VALUES (5, 'host:{PID}')") == (False, False)
    claim = "INSERT INTO foliot.claim (worker, number, runs) VALUES (5, 1, '{7}')"
    assert await seen(claim) == (True, False)
    assert await seen("UPDATE foliot.worker SET state = 2") == (False, False)
    assert await seen("DELETE FROM foliot.claim") == (False, True)
    await connection.close()


async def test_a_line_with_room_in_which_somebody_stands_is_remembered(dsn: str):
    """Whoever was called afterwards, by one who came later, had been forgotten all the same."""
    connection = await asyncpg.connect(dsn)
    watch = Watch(cast("PostgresServer", SimpleNamespace(dsn=dsn)))

    async def seen(*statements: str) -> set[int]:
        for statement in statements:
            await connection.execute(statement)
        await watch._look(connection)
        return watch.uncalled

    seat = "INSERT INTO foliot.seat (run, line, slot, priority, at, state) VALUES ({}, 1, {}, 0, now(), {})".format
    assert await seen("INSERT INTO foliot.slot (id, owner, capacity) VALUES (8, 1, 1), (9, 1, 1)") == set()
    assert await seen(seat(1, 8, 2), seat(2, 8, 1), seat(3, 9, 0)) == set()
    assert await seen("INSERT INTO foliot.knock VALUES (8)", "DELETE FROM foliot.seat WHERE run = 1") == set()
    assert await seen("DELETE FROM foliot.knock") == {8}
    assert await seen("UPDATE foliot.seat SET state = 2 WHERE run = 2") == {8}
    await connection.close()


async def test_a_process_that_does_not_come_up_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(topology, "READY", 0.0)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "api-0.log").write_text("first\n" * 50 + "the port is taken\n")
    (port,) = free_ports(1)
    system = Topology.__new__(Topology)
    system.folder = tmp_path
    system.places = cast("Places", SimpleNamespace(api=lambda _: ("127.0.0.1", port)))
    with pytest.raises(TimeoutError, match="api-0 was not ready") as error:
        await system.ready()
    assert "the port is taken" in str(error.value)
    assert str(error.value).count("first") == topology.TAIL - 1
