import asyncio
import os
import signal
import stat
import tempfile

import asyncpg
import pytest

from foliot.kit.postgres import PostgresError, PostgresServer
from foliot.kit.postgres.logfile import LARGEST
from foliot.kit.postgres.process import look_at
from kit.launching import LOST, ask, eventually, fresh_home
from world import PATIENCE


@pytest.fixture
def home():
    with fresh_home() as home:
        yield home


async def test_a_cold_start_ends_with_a_database_that_answers(home):
    with PostgresServer(home) as server:
        assert await ask(server, "SELECT current_database() || ' ' || current_user") == "foliot foliot"
        assert await ask(server, "SHOW data_checksums") == "on"
        assert await ask(server, "SHOW listen_addresses") == ""
        assert await ask(server, "SHOW server_encoding") == "UTF8"
        assert await ask(server, "SELECT 'a' < 'B'") is False
        assert await ask(server, "SELECT upper('ä')") == "Ä"
        assert server.poll() is None


async def test_a_wrong_password_is_refused(home):
    with PostgresServer(home) as server:
        secret = server.dsn.split(":")[2].partition("@")[0]
        with pytest.raises(asyncpg.InvalidPasswordError):
            await ask(server.dsn.replace(secret, "guess"), "SELECT 1")


async def test_a_second_start_keeps_what_was_written(home):
    with PostgresServer(home) as server:
        first = server.dsn
        await ask(server, "CREATE TABLE kept AS SELECT 42 AS answer")
    with PostgresServer(home) as server:
        assert server.dsn == first
        assert await ask(server, "SELECT answer FROM kept") == 42


async def test_no_acknowledged_row_is_lost_by_kill_9(home):
    server = PostgresServer(home)
    server.start()
    connection = await asyncpg.connect(server.dsn)
    await connection.execute("CREATE TABLE acknowledged (id int)")
    noted, enough = [], asyncio.Event()

    async def write():
        while True:
            await connection.execute(f"INSERT INTO acknowledged VALUES ({len(noted)})")
            noted.append(len(noted))
            if len(noted) == 200:
                enough.set()

    writing = asyncio.create_task(write())
    await enough.wait()
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(LOST):
        await writing
    connection.terminate()
    eventually(lambda: server.poll() is not None)
    assert server.poll() == -signal.SIGKILL
    assert server.pid is None
    server.start()
    found = await ask(server, "SELECT array_agg(id) FROM acknowledged")
    assert set(noted) <= set(found)
    server.stop()


async def test_starting_twice_and_stopping_twice_do_no_harm(home):
    server = PostgresServer(home)
    server.stop()
    server.start()
    pid = server.pid
    server.start()
    assert server.pid == pid
    server.stop()
    server.stop()
    assert (server.pid, server.poll()) == (None, 0)


async def test_clients_do_not_hold_up_a_fast_stop(home):
    server = PostgresServer(home)
    server.start()
    connection = await asyncpg.connect(server.dsn)
    async with asyncio.timeout(PATIENCE):
        await asyncio.to_thread(server.stop)
    assert server.poll() == 0
    connection.terminate()


async def test_a_server_that_ignores_us_is_ended_all_the_same(home):
    said = []
    server = PostgresServer(home, log=said.append)
    server.start()
    os.kill(server.pid, signal.SIGSTOP)
    server.stop("immediate", timeout=0.1)
    assert server.poll() == -signal.SIGKILL
    assert "SIGQUIT" in said[-1]


async def test_the_terminals_ctrl_c_does_not_reach_the_server(home):
    with PostgresServer(home) as server:
        assert os.getsid(server.pid) != os.getsid(0)
        assert os.getpgid(server.pid) != os.getpgid(0)


async def test_only_one_launcher_holds_a_home(home):
    with PostgresServer(home) as server:
        with pytest.raises(PostgresError, match=rf"another `foliot up` runs here \(pid {os.getpid()}\)"):
            PostgresServer(home).start()
        assert await ask(server, "SELECT 1") == 1
    with PostgresServer(home) as server:
        assert server.pid is not None


async def test_anyone_with_the_home_knows_the_address(home):
    other = PostgresServer(home)
    with pytest.raises(PostgresError, match="no database runs"):
        _ = other.dsn
    with PostgresServer(home):
        assert await ask(other, "SELECT 1") == 1


async def test_a_port_in_the_environment_misleads_nobody(home, monkeypatch):
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nowhere")
    with PostgresServer(home) as server:
        assert await ask(server, "SELECT 1") == 1


async def test_odd_characters_in_paths_do_no_harm(home, monkeypatch):
    odd = home.parent / "a b%20'd\"é -D"
    odd.mkdir()
    odd.chmod(0o711)
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    with PostgresServer(odd / "o,o") as server:
        assert server._socket.parent == odd
        assert await ask(server, "SELECT 1") == 1


async def test_a_start_that_fails_shows_the_log_and_lets_go(home):
    with pytest.raises(PostgresError, match=r"(?s)ended with status 1.*shared_buffers.*start again"):
        PostgresServer(home, settings={"shared_buffers": "nonsense"}).start()
    with PostgresServer(home) as server:
        assert await ask(server, "SELECT 1") == 1


async def test_settings_overrule_the_defaults(home):
    with PostgresServer(home, settings={"max-connections": "33", "Work_Mem": "7MB"}) as server:
        assert await ask(server, "SHOW max_connections") == "33"
        assert await ask(server, "SHOW work_mem") == "7MB"
        assert await ask(server, "SHOW jit") == "off"


async def test_alter_system_cannot_switch_durability_off(home):
    with PostgresServer(home) as server:
        await ask(server, "ALTER SYSTEM SET fsync = off")
    with PostgresServer(home) as server:
        assert await ask(server, "SHOW fsync") == "on"


async def test_a_large_log_makes_room_at_the_next_start(home):
    home.mkdir()
    log = home / "postgres.log"
    log.write_bytes(b"x" * (LARGEST + 1))
    with PostgresServer(home):
        assert log.stat().st_size < LARGEST
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
        assert (home / "postgres.log.1").stat().st_size == LARGEST + 1


async def test_a_stop_leaves_no_process_and_no_socket(home):
    with PostgresServer(home) as server:
        pid, socket = server.pid, server._socket
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert look_at(pid) is None
    assert not socket.exists()


async def test_a_database_that_was_dropped_is_made_again(home):
    with PostgresServer(home) as server:
        await ask(server.dsn.replace("/foliot?", "/postgres?"), "DROP DATABASE foliot")
    with PostgresServer(home) as server:
        assert await ask(server, "SELECT current_database()") == "foliot"
