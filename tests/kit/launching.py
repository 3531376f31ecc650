"""Homes, launchers in processes of their own, and waiting without sleeping, for the tests of the embedded database."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import asyncpg
import pytest

import foliot
from foliot.kit.postgres import PostgresError, PostgresServer, find_binaries
from foliot.kit.postgres.leftover import find_postmaster, read_pid_file
from foliot.kit.postgres.place import find_folder

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="only root can become another user")
PATHS = (Path(foliot.__file__).parents[1], find_binaries().bin.parents[2])

# What asyncpg raises when the server goes away, depending on the moment.
LOST = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

LAUNCH = """
import sys
from pathlib import Path
from foliot.kit.postgres import PostgresServer, find_binaries
server = PostgresServer(Path(sys.argv[1]), binaries=find_binaries(*map(Path, sys.argv[2:])))
server.start()
print(server.pid, server.dsn, flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def fresh_home() -> Iterator[Path]:
    """Make a home that every account can reach; whatever still runs in it at the end is killed, and all is removed."""
    base = Path(tempfile.mkdtemp(prefix="foliot-test-"))
    base.chmod(0o711)
    home = base / "home"
    try:
        yield home
    finally:
        clean(home)
        eventually(lambda: remove(base))


def clean(home: Path) -> None:
    with suppress(PostgresError):
        folder = find_folder(home)
        if folder is None:
            return
        file = read_pid_file(folder / "data")
        left = find_postmaster(folder / "data", folder.stat().st_uid)
        if left is not None:
            left.send_signal(signal.SIGKILL)
            eventually(lambda: left.poll() is not None)
        if file is not None and file.socket is not None:
            shutil.rmtree(file.socket, ignore_errors=True)


def remove(folder: Path) -> bool:
    """Try once; children of a killed server may still be writing."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def eventually(condition: Callable[[], bool], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@contextmanager
def deaf_port() -> Iterator[int]:
    """A port that refuses whoever connects, and that nobody else is given meanwhile: taken, and not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def spawn_launcher(*arguments: Path, python: str = sys.executable, user: int | None = None) -> subprocess.Popen:
    """Run `PostgresServer` in a process of its own; it stops the server when its standard input ends."""
    return subprocess.Popen(
        [python, "-c", LAUNCH, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(map(str, PATHS)), "PYTHONDONTWRITEBYTECODE": "1"},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )


@contextmanager
def launcher(
    home: Path, python: str = sys.executable, user: int | None = None
) -> Iterator[tuple[int, str, subprocess.Popen]]:
    """Give the pid of a server, its address, and the process of the launcher that started it."""
    with spawn_launcher(home, python=python, user=user) as process:
        pid, dsn = process.stdout.readline().split()
        yield int(pid), dsn, process
        process.stdin.close()


def plain_user() -> tuple[int | None, str]:
    """Return a user other than root, as an id to switch to (None: we are one already), and a Python that it can run."""
    if not ROOT:
        return None, sys.executable
    uid = pwd.getpwnam("nobody").pw_uid
    for python in filter(None, (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin"))):
        with suppress(PermissionError):
            check = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(check, user=uid, group=uid, extra_groups=[], cwd="/", check=False).returncode == 0:
                return uid, python
    pytest.skip("nobody can run no Python >= 3.11 here")


async def ask(server: PostgresServer | str, sql: str, *values: object) -> object:
    connection = await asyncpg.connect(server if isinstance(server, str) else server.dsn)
    try:
        return await connection.fetchval(sql, *values)
    finally:
        await connection.close()
