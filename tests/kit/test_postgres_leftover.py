import asyncio
import os
import signal
import subprocess
from pathlib import Path

import asyncpg
import pytest

from foliot.kit.postgres import PostgresError, PostgresServer, find_binaries, leftover, server
from foliot.kit.postgres.leftover import find_postmaster, read_pid_file
from foliot.kit.postgres.process import look_at
from kit.launching import LOST, ROOT, ask, eventually, fresh_home, launcher


@pytest.fixture
def home():
    with fresh_home() as home:
        yield home


def data_of(home: Path) -> Path:
    return (home / "postgres").resolve() / "data"


def owner_of(home: Path) -> int:
    return data_of(home).stat().st_uid


def make_cluster(home: Path) -> None:
    with PostgresServer(home):
        pass


def spawn_as_owner(home: Path, *command: str | Path) -> subprocess.Popen:
    """Start a process of the account the server runs as: to that account's `kill -0` it looks like a live server."""
    user = owner_of(home) if ROOT else None
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, user=user, cwd="/")


def single_user(home: Path) -> subprocess.Popen:
    return spawn_as_owner(home, find_binaries().bin / "postgres", "--single", "-D", data_of(home), "postgres")


def make_zombie(home: Path) -> subprocess.Popen:
    process = spawn_as_owner(home, "true")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    return process


def kill_unreaped(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def pretend_pid(home: Path, pid: int) -> None:
    text = f"{pid}\n{data_of(home)}\n1700000000\n5432\n/nowhere\n\n  1234567         0\nready   \n"
    file = data_of(home) / "postmaster.pid"
    file.write_text(text)
    os.chown(file, owner_of(home), -1)


async def leave_behind(home: Path) -> int:
    """Kill a launcher in the middle of its work; return the pid of the server it leaves."""
    with launcher(home) as (pid, dsn, process):
        await ask(dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
        process.kill()
        process.wait()
    return pid


async def test_a_server_left_by_a_killed_launcher_is_adopted(home):
    said, pid = [], await leave_behind(home)
    adopter = PostgresServer(home, log=said.append)
    adopter.start()
    assert adopter.pid == pid
    assert "adopted" in said[-1]
    assert await ask(adopter, "SELECT answer FROM kept") == 42
    assert adopter.poll() is None
    adopter.stop()
    assert adopter.poll() is not None
    assert find_postmaster(data_of(home), owner_of(home)) is None
    assert "database system is shut down" in (home / "postgres.log").read_text()


async def test_an_adopted_server_that_dies_is_noticed_and_replaced(home):
    pid = await leave_behind(home)
    adopter = PostgresServer(home)
    adopter.start()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: adopter.poll() is not None)
    assert adopter.pid is None
    adopter.start()
    assert adopter.pid != pid
    assert await ask(adopter, "SELECT answer FROM kept") == 42
    adopter.stop()


async def test_a_leftover_that_does_not_answer_is_replaced(home, monkeypatch):
    monkeypatch.setattr(server, "LEFTOVER_SILENCE", 0.1)
    monkeypatch.setattr(server, "LEFTOVER_END", 0.1)
    pid = await leave_behind(home)
    os.kill(pid, signal.SIGSTOP)
    with PostgresServer(home) as ours:
        assert ours.pid != pid
        assert await ask(ours, "SELECT answer FROM kept") == 42


async def test_a_leftover_whose_socket_was_swept_away_is_replaced(home):
    pid = await leave_behind(home)
    socket = read_pid_file(data_of(home)).socket
    for entry in socket.iterdir():
        entry.unlink()
    socket.rmdir()
    with PostgresServer(home) as ours:
        assert ours.pid != pid
        assert await ask(ours, "SELECT answer FROM kept") == 42


async def test_an_orphan_deep_in_a_computation_does_not_block_the_next_start(home, monkeypatch):
    monkeypatch.setattr(leftover, "ORPHANS_MAY_LEAVE", 0.1)
    ours = PostgresServer(home)
    ours.start()
    connection = await asyncpg.connect(ours.dsn)
    backend = await connection.fetchval("SELECT pg_backend_pid()")
    computing = asyncio.create_task(connection.execute("SELECT count(*) FROM generate_series(1, 100000000000)"))
    async with asyncio.timeout(20):
        while not await ask(ours, "SELECT state = 'active' FROM pg_stat_activity WHERE pid = $1", backend):
            pass
    os.kill(ours.pid, signal.SIGKILL)
    eventually(lambda: ours.poll() is not None)
    assert look_at(backend) is not None
    ours.start()
    assert await ask(ours, "SELECT 1") == 1
    with pytest.raises(LOST):
        await computing
    connection.terminate()
    ours.stop()


async def test_a_zombie_is_not_taken_for_a_server(home):
    make_cluster(home)
    zombie = make_zombie(home)
    assert look_at(zombie.pid).zombie
    pretend_pid(home, zombie.pid)
    with PostgresServer(home) as ours:
        assert ours.pid != zombie.pid
        assert await ask(ours, "SELECT 1") == 1
    zombie.communicate()


async def test_a_postmaster_that_nobody_has_reaped_is_not_taken_for_a_server(home):
    dead = PostgresServer(home)
    dead.start()
    await ask(dead, "CREATE TABLE kept AS SELECT 42 AS answer")
    kill_unreaped(dead.pid)
    dead._lock.release()  # as if another launcher had been its parent
    with PostgresServer(home) as ours:
        assert await ask(ours, "SELECT answer FROM kept") == 42
    assert dead.poll() == -signal.SIGKILL


async def test_a_pid_that_was_given_to_another_program_is_not_taken_for_a_server(home):
    make_cluster(home)
    with spawn_as_owner(home, "cat") as other:
        pretend_pid(home, other.pid)
        with PostgresServer(home) as ours:
            assert ours.pid != other.pid
            assert await ask(ours, "SELECT 1") == 1
        assert other.poll() is None


async def test_a_pid_that_was_given_to_the_server_of_another_home_is_left_alone(home):
    make_cluster(home)
    with fresh_home() as elsewhere, PostgresServer(elsewhere) as other:
        pretend_pid(home, other.pid)
        with PostgresServer(home) as ours:
            assert ours.pid != other.pid
            assert await ask(ours, "SELECT 1") == 1
        assert await ask(other, "SELECT 1") == 1


async def test_a_zombie_in_the_sockets_lock_is_no_obstacle_either(home):
    make_cluster(home)
    zombie = make_zombie(home)
    with PostgresServer(home) as ours:
        socket, owner = ours._socket, owner_of(home)
    socket.mkdir(mode=0o700)
    lock = socket / ".s.PGSQL.5432.lock"
    lock.write_text(f"{zombie.pid}\n{data_of(home)}\n1700000000\n5432\n{socket}\n")
    for path in (socket, lock):
        os.chown(path, owner, -1)
    with PostgresServer(home) as ours:
        assert await ask(ours, "SELECT 1") == 1
    zombie.communicate()


@pytest.mark.parametrize("text", ["", "garbage\n", "999999999\n", "-1\n\n"])
async def test_a_torn_pid_file_is_no_obstacle(home, text):
    make_cluster(home)
    (data_of(home) / "postmaster.pid").write_text(text)
    with PostgresServer(home) as ours:
        assert await ask(ours, "SELECT 1") == 1


async def test_somebody_at_work_in_single_user_mode_is_not_disturbed(home):
    make_cluster(home)
    with single_user(home) as single:
        eventually(lambda: (data_of(home) / "postmaster.pid").exists() and read_pid_file(data_of(home)).pid < 0)
        with pytest.raises(PostgresError, match=f"single.*{single.pid}"):
            PostgresServer(home).start()
        assert single.poll() is None
    assert single.returncode == 0
    with PostgresServer(home) as ours:
        assert await ask(ours, "SELECT 1") == 1
