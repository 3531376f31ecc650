"""The embedded database as a child process: start it, watch it, stop it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from signal import Signals
from subprocess import SubprocessError
from types import TracebackType
from typing import Final, Literal, Self

from foliot.kit.postgres.account import Account
from foliot.kit.postgres.binaries import Binaries, find_binaries
from foliot.kit.postgres.cluster import check_version, ensure_cluster, read_password
from foliot.kit.postgres.errors import PostgresError
from foliot.kit.postgres.leftover import Running, clear_traces, end, find_postmaster, read_pid_file
from foliot.kit.postgres.lock import HomeLock
from foliot.kit.postgres.logfile import last_lines, open_log
from foliot.kit.postgres.place import find_folder, settle
from foliot.kit.postgres.ready import Door, wait_until_ready
from foliot.kit.postgres.sockets import check_socket_folder, dsn, prepare_socket_folder
from foliot.kit.postgres.transplant import forget_others, reachable
from foliot.kit.postgres.tuning import arguments, check_settings

OWN_SILENCE: Final = 60.0
LEFTOVER_SILENCE: Final = 10.0
LEFTOVER_END: Final = 5.0
RECOVERY: Final = 600.0


class PostgresServer:
    """The server of one home (FOLIOT_HOME): at most one launcher holds it, and what is committed survives every end."""

    def __init__(
        self,
        home: Path,
        *,
        binaries: Binaries | None = None,
        settings: Mapping[str, str] | None = None,
        account: str | None = None,
        variables: Mapping[str, str] | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        """`variables`: what the server finds in its environment besides what it needs."""
        check_settings(settings or {})
        self._home = home.resolve()
        self._binaries = binaries
        self._settings = dict(settings or {})
        self._account = account
        self._variables = variables
        self._log = log or (lambda _: None)
        self._lock = HomeLock(self._home / "postgres.lock")
        self._server: Running | None = None
        self._socket: Path | None = None

    @property
    def dsn(self) -> str:
        """Where this home's server answers, whether we started it or another process did."""
        try:
            folder = find_folder(self._home)
            file = read_pid_file(folder / "data") if folder else None
        except PermissionError as error:
            raise PostgresError(
                f"{error.filename} is not ours to read: act as the user who runs `foliot up`."
            ) from error
        socket = self._socket or (file.socket if file else None)
        if socket is None:
            raise PostgresError(f"no database runs in {self._home}")
        return dsn(socket, read_password(self._home))

    @property
    def pid(self) -> int | None:
        return self._server.pid if self._server is not None and self._server.poll() is None else None

    def start(self) -> None:
        """Return when the server answers and the database `foliot` exists; on failure nothing of ours runs on."""
        if self.pid is not None:
            return
        try:
            self._home.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            self._start()
        except BaseException as error:
            self._server = self._socket = None
            self._lock.release()
            if isinstance(error, OSError | SubprocessError):
                raise PostgresError(
                    f"The database in {self._home} cannot be started: {error}."
                    " See who owns that, and whether its disk is full or read-only."
                ) from error
            raise

    def poll(self) -> int | None:
        """Return the exit status once the server is gone (1 if an adopted one's is unknown), None while it runs."""
        return self._server.poll() if self._server is not None else None

    def stop(self, mode: Literal["fast", "immediate"] = "fast", timeout: float = 30) -> None:
        """End the server, harder after `timeout` seconds, and let go of the home; without effect if none runs."""
        if self._server is not None:
            end(self._server, Signals.SIGINT if mode == "fast" else Signals.SIGQUIT, timeout, self._log)
        if self._socket is not None:
            with suppress(OSError):  # not empty, or gone
                self._socket.rmdir()
            self._socket = None
        self._lock.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> None:
        binaries = self._binaries or find_binaries()
        folder, account = settle(self._home, self._account, self._log)
        check_version(folder / "data", binaries)
        binaries = reachable(binaries, account, folder, self._log)
        data = ensure_cluster(self._home, folder, binaries, account)
        password = read_password(self._home)
        if door := self._adopt(data, binaries, account):
            door.ensure_database(password)
            return
        socket = prepare_socket_folder(self._home, account)
        clear_traces(data, socket, account.uid)
        door = Door(binaries, account, socket)
        self._spawn(data, door, password)
        forget_others(binaries, folder)

    def _adopt(self, data: Path, binaries: Binaries, account: Account) -> Door | None:
        """Take over a live server of ours if it answers, else end it."""
        server, file = find_postmaster(data, account.uid), read_pid_file(data)
        if server is None:
            return None
        if file and file.socket and file.socket.exists() and file.status != "stopping":
            check_socket_folder(file.socket, account)
            door = Door(binaries, account, file.socket)
            if wait_until_ready(door, lambda: server.poll() is None, silent=LEFTOVER_SILENCE, recovering=RECOVERY):
                self._log(
                    f"PostgreSQL (pid {server.pid}) was still running: adopted, with the settings it was started with"
                )
                self._server, self._socket = server, file.socket
                return door
        self._log(f"PostgreSQL (pid {server.pid}) was still running but does not answer: ending it")
        end(server, Signals.SIGQUIT, LEFTOVER_END, self._log)
        return None

    def _spawn(self, data: Path, door: Door, password: str) -> None:
        with open_log(self._home / "postgres.log") as log:
            began = log.tell()
            command = [str(door.binaries.bin / "postgres"), "-D", str(data)]
            command += arguments(data, door.socket, self._settings)
            child = door.account.spawn(command, folder=data, output=log, variables=self._variables)
        self._server, self._socket = child, door.socket
        try:
            self._wait(child, door, began)
            door.ensure_database(password)
        except BaseException:
            self.stop("immediate", 5)
            raise

    def _wait(self, child: Running, door: Door, began: int) -> None:
        if wait_until_ready(door, lambda: child.poll() is None, silent=OWN_SILENCE, recovering=RECOVERY):
            return
        status, path = child.poll(), self._home / "postgres.log"
        what = "does not answer" if status is None else f"ended with status {status} instead of answering"
        raise PostgresError(
            "\n  ".join([f"PostgreSQL {what}. The end of {path}:", *last_lines(path, began)])
            + "\nCorrect what it names (settings, disk space, memory) and start again; the data is as it was."
        )
