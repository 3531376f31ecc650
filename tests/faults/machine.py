"""`foliot up` as a process of its own, with an application to serve; its processes by name, and ways to hurt them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg

from foliot.kit.postgres import PostgresServer
from foliot.kit.postgres.leftover import read_pid_file
from foliot.kit.postgres.process import look_at
from foliot.kit.settings import Access, find_access
from kit.launching import LOST, PATHS, fresh_home

CHILDREN = ("api", "scheduler", "worker")
APP = """
import asyncio, os, time
from foliot import Worker

worker = Worker(concurrency=1_000)
ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

def begun(ctx):
    os.write(ledger, f"{ctx.run} {ctx.fence} {ctx.attempt} {os.getpid()} {time.monotonic()}\\n".encode())

@worker.task
async def note(ctx, payload):
    begun(ctx)
    await asyncio.sleep(payload["seconds"])

@worker.task(isolation="process")
def apart(ctx, payload):
    begun(ctx)
    time.sleep(payload["seconds"])

@worker.task
def stuck(ctx, payload):
    begun(ctx)
    if ctx.attempt == 1:  # a thread that nobody can stop
        time.sleep(600)

@worker.task
async def flaky(ctx, payload):
    begun(ctx)
    if ctx.attempt == 1:
        raise RuntimeError("not yet")
"""


async def until(condition: Callable[[], Any], seconds: float = 20, what: str = "it") -> Any:
    """Ask again and again, a coroutine function or a plain one, until the answer is true; return that answer."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        await asyncio.sleep(0.02)


class Refused(Exception):  # noqa: N818 - reads aloud
    """The API answered, but not with success."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Machine:
    """One home and whatever `foliot up` runs in it. Every process it starts is gone when `machine()` ends."""

    def __init__(self, home: Path, *, python: str = sys.executable, user: int | None = None, **settings: str) -> None:
        self.home = home
        self.folder = home.parent
        self.ledger = self.folder / "ledger"
        self._python = python
        self._user = user
        self._settings = {"FOLIOT_PORT": "0", **settings}
        self._log = self.folder / "log"
        self._began = 0
        self._started: list[subprocess.Popen[bytes]] = []
        self._connection: asyncpg.Connection | None = None
        (self.folder / "app.py").write_text(APP)
        if user is not None:
            os.chown(self.folder, user, user)

    @property
    def up(self) -> "subprocess.Popen[bytes]":
        return self._started[-1]

    @property
    def log(self) -> str:
        """What has been said since the last start."""
        return self._log.read_bytes()[self._began :].decode(errors="replace")

    @property
    def access(self) -> Access:
        found = find_access({"FOLIOT_HOME": str(self.home)})
        assert found is not None
        return found

    @property
    def dsn(self) -> str:
        return self._settings.get("FOLIOT_DATABASE_URL") or PostgresServer(self.home).dsn

    def spawn(self, *command: str) -> "subprocess.Popen[bytes]":
        """Run `foliot` with this home, its output going to the log."""
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [self._python, "-m", "foliot", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={
                    "PATH": os.environ["PATH"],
                    "PYTHONPATH": ":".join(map(str, PATHS)),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "FOLIOT_HOME": str(self.home),
                    "LEDGER": str(self.ledger),
                    **self._settings,
                },
                start_new_session=True,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
            )

    def begin(self, app: str | None = "app:worker") -> None:
        self._log.touch()
        self._began = self._log.stat().st_size
        self._started.append(self.spawn("up", *([app] if app else [])))

    async def start(self, app: str | None = "app:worker", seconds: float = 30) -> float:
        """Start, and return how long it took until the greeting."""
        began = time.monotonic()
        self.begin(app)
        await self.greeted(seconds)
        return time.monotonic() - began

    async def greeted(self, seconds: float = 30) -> None:
        await until(lambda: "Foliot is up." in self.log or self.up.poll() is not None, seconds, "the greeting")
        assert self.up.poll() is None, self.log

    async def fail(self, seconds: float = 20) -> str:
        """Start in the expectation of failure; what was said."""
        self.begin()
        assert await self.ended(seconds) == 1, self.log
        return self.log

    async def ended(self, seconds: float = 20) -> int:
        await until(lambda: self.up.poll() is not None, seconds, "the end of foliot up")
        return self.up.returncode

    def pid(self, name: str) -> int | None:
        """The process of that name: `up`, `api`, `scheduler`, `worker` or `postgres`."""
        if name == "up":
            return self.up.pid
        if name == "postgres":
            file = read_pid_file(self.home.joinpath("postgres").resolve() / "data")
            found = look_at(file.pid) if file and file.pid > 0 else None
            return None if found is None or found.zombie else found.pid
        return self._children().get(name)

    def pids(self) -> dict[str, int | None]:
        return {name: self.pid(name) for name in ("up", *CHILDREN, "postgres")}

    def hurt(self, name: str, how: signal.Signals = signal.SIGKILL) -> int:
        pid = self.pid(name)
        assert pid is not None
        os.kill(pid, how)
        return pid

    def everyone(self) -> set[int]:
        """All processes of this machine: the supervisor's, and the database with its own children."""
        known = {pid for pid in self.pids().values() if pid is not None}
        postmaster = self.pid("postgres")
        return known | {pid for pid, parent in _parents() if parent == postmaster}

    async def ask(self, sql: str, *values: object) -> list[asyncpg.Record]:
        # Asked again and again while a test waits: to connect anew each time would keep a processor busy.
        if self._connection is not None:
            try:
                return await self._connection.fetch(sql, *values)
            except LOST:
                self._connection.terminate()
        self._connection = await asyncpg.connect(self.dsn, server_settings={"search_path": "foliot"})
        return await self._connection.fetch(sql, *values)

    async def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        access = self.access
        headers = {"Authorization": f"Bearer {access.key}"} | ({"Idempotency-Key": key} if key else {})
        timeout = aiohttp.ClientTimeout(total=15)
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
            session.request(method, access.url + path, json=body) as response,
        ):
            if response.status >= 400:
                raise Refused(response.status, f"{await response.text()}\n{self.log}")
            return await response.json()

    async def insist(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Call until it is acknowledged, as a client with an idempotency key would: through cuts and 503s."""

        async def attempt() -> list[Any]:
            try:
                return [await self.call(method, path, body, key)]
            except (aiohttp.ClientError, TimeoutError):
                return []
            except Refused as error:
                if error.status != 503:
                    raise
                return []

        return (await until(attempt, 30, f"{method} {path}"))[0]

    def end(self) -> None:
        """Kill whatever still runs, the database excepted: whoever owns the home ends that."""
        if self._connection is not None:
            self._connection.terminate()
        for process in self._started:
            process.kill()
            process.wait()
        # Also those whose supervisor is gone: after a failed test there may be some, stopped or stuck.
        home = f"FOLIOT_HOME={self.home}".encode()
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if home in entry.read_bytes().split(b"\0"):
                    os.kill(int(entry.parent.name), signal.SIGKILL)

    def _children(self) -> dict[str, int]:
        found = {}
        for pid, parent in _parents():
            if parent == self.up.pid and (process := look_at(pid)) and not process.zombie:
                words = process.command.split()
                found |= {name: pid for name in CHILDREN if words[1:4] == ["-m", "foliot", name]}
        return found


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        yield int(entry.name), int(fields[1])


def gone(pids: Sequence[int] | set[int]) -> bool:
    return not [pid for pid in pids if (found := look_at(pid)) is not None and not found.zombie]


@contextmanager
def machine(**settings: Any) -> Iterator[Machine]:
    with fresh_home() as home:
        made = Machine(home, **settings)
        try:
            yield made
        finally:
            made.end()
