"""`foliot up` from its start to its end: what it refuses, what it says, what it leaves behind."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.site import free_ports
from faults.machine import CHILDREN, gone, machine, until
from faults.story import Story, Target, report, story
from foliot.kit.postgres import PostgresServer
from foliot.kit.postgres.account import choose_account
from foliot.kit.postgres.sockets import prepare_socket_folder
from foliot.kit.settings import client_file
from kit.launching import ask, deaf_port, eventually, fresh_home, plain_user

SECONDS_TO_STOP = 8


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_a_stop_in_the_middle_of_work_leaves_no_process_and_the_next_start_goes_on(how):
    with machine() as up:
        async with story(up) as told:
            key, mode = up.access.key, stat.S_IMODE(client_file(up.home).stat().st_mode)
            assert mode == 0o600
            await told.begin()
            everyone, at = up.everyone(), time.monotonic()
            os.killpg(up.up.pid, how)  # as a terminal does it
            assert await up.ended(SECONDS_TO_STOP) == 0, up.log
            stopped = time.monotonic() - at
            assert gone(everyone), "a process was left behind"
            assert "error" not in up.log
            started = await up.start()
            assert started < 2 * told.started, "it waited for something"
            assert up.access.key == key
            await told.works_again(10)
            await told.finish(30)
            report(f"{how.name}", stopped=stopped, started_again=started)
            assert await told.check() == 0, "a worker that is told to stop finishes what it runs"


async def test_a_second_up_in_the_same_home_says_so_and_disturbs_nothing():
    with machine(FOLIOT_PORT=str(*free_ports(1))) as up:
        await up.start()
        before = up.pids()
        second = up.spawn("up", "app:worker")
        await until(lambda: second.poll() is not None, 30, "the end of the second")
        assert second.returncode == 1
        assert f"another `foliot up` runs here (pid {up.up.pid})" in up.log
        assert up.pids() == before
        assert (await up.call("GET", "/v1/jobs"))["items"] == []


async def test_a_port_in_use_is_told_before_anything_is_started():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with machine(FOLIOT_PORT=str(port)) as up:
            said = await up.fail()
            assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in said
            assert "FOLIOT_PORT" in said
            assert not (up.home / "postgres").exists(), "the database was touched"


async def test_orphans_leave_by_themselves_even_if_the_database_is_gone_too():
    with machine() as up:
        async with story(up) as told:
            await told.begin()
            left = up.pids()
            up.hurt("up")
            up.hurt("postgres")
            at = time.monotonic()
            await until(lambda: gone([left[name] for name in CHILDREN]), 15, "the end of the orphans")
            report("kill -9 up and postgres", orphans_gone=time.monotonic() - at)


def plain_user_with_our_packages() -> tuple[int | None, str]:
    user, python = plain_user()
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    if version.split(".")[:2] != [str(part) for part in sys.version_info[:2]]:
        pytest.skip("the packages at hand are for another version of Python")
    return user, python


async def test_everything_works_for_a_plain_user():
    user, python = plain_user_with_our_packages()
    with machine(python=python, user=user) as up:
        async with story(up) as told:
            assert client_file(up.home).stat().st_uid == (os.geteuid() if user is None else user)
            await told.submit(100)
            await told.submit_requests(10)
            killed = up.hurt("postgres")
            await until(lambda: up.pid("postgres") not in {None, killed}, 30, "a new database")
            await told.submit(100)
            await told.finish(30)


async def test_a_database_of_ones_own_is_used_instead_of_the_embedded_one(empty_dsn):
    with machine(FOLIOT_DATABASE_URL=empty_dsn) as up:
        await up.start()
        assert not (up.home / "postgres").exists()
        async with Target.open() as target:
            told = Story(up, target)
            await told.submit(100)
            await told.submit_requests(10)
            await up.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'foliot'")
            await told.submit(100)
            await told.finish(30)
            assert len(await told.completed()) == 210
        children = [up.pid(name) for name in CHILDREN]
        up.up.send_signal(signal.SIGINT)
        assert await up.ended(SECONDS_TO_STOP) == 0
        assert gone(children)
        assert "stopping the database" not in up.log


@contextmanager
def forgetful_server(home: Path) -> Iterator[str]:
    """A server with fsync off; the launcher would never start one."""
    with PostgresServer(home) as server:
        words = Path(f"/proc/{server.pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
        dsn = server.dsn
    folder = home.joinpath("postgres").resolve()
    account = choose_account(None, folder.stat().st_uid)
    socket_folder = prepare_socket_folder(home.resolve(), account)
    command = [word.replace("fsync=on", "fsync=off") for word in words]
    with (home / "log").open("wb") as log, account.spawn(command, folder=folder / "data", output=log) as process:
        try:
            eventually(lambda: b"ready to accept" in (home / "log").read_bytes() or process.poll() is not None)
            yield dsn
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
            socket_folder.rmdir()


async def test_a_server_that_may_lose_commits_is_refused_before_anything_is_written():
    with fresh_home() as other, forgetful_server(other) as dsn:
        assert await ask(dsn, "SHOW fsync") == "off"
        with machine(FOLIOT_DATABASE_URL=dsn) as up:
            said = await up.fail()
            assert "fsync = off, so acknowledged work could be lost" in said
            assert "set fsync = on" in said
            assert await ask(dsn, "SELECT to_regnamespace('foliot') IS NULL")


@pytest.mark.parametrize("wrong", ["password", "name", "address"])
async def test_a_database_that_refuses_us_is_told_in_one_line(server, wrong):
    secret = server.dsn.split(":")[2].partition("@")[0]
    address = {
        "password": server.dsn.replace(secret, "guess"),
        "name": server.dsn.replace("/foliot?", "/nowhere?"),
        "address": "nonsense",
    }[wrong]
    with machine(FOLIOT_DATABASE_URL=address) as up:
        said = await up.fail()
        assert "the database refuses us" in said
        assert "FOLIOT_DATABASE_URL" in said
        assert "Traceback" not in said


async def test_a_database_that_is_away_is_waited_for_until_ctrl_c():
    with deaf_port() as port, machine(FOLIOT_DATABASE_URL=f"postgresql://foliot@127.0.0.1:{port}/foliot") as up:
        up.begin()
        await until(lambda: "the database is out of reach" in up.log, 30, "a word about the database")
        up.up.send_signal(signal.SIGINT)
        assert await up.ended(SECONDS_TO_STOP) == 0, up.log
