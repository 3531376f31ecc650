"""Whether a server answers: first at its door, then to a question."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from foliot.kit.postgres.account import Account
from foliot.kit.postgres.binaries import Binaries
from foliot.kit.postgres.errors import PostgresError


class Answer(Enum):
    ACCEPTS = 0
    REJECTS = 1  # it starts up, replays its log, or shuts down
    SILENT = 2


@dataclass(frozen=True, slots=True)
class Door:
    """The way to a server's socket, through the client programs of the same version."""

    binaries: Binaries
    account: Account
    socket: Path

    def knock(self) -> Answer:
        if not (self.socket / ".s.PGSQL.5432").exists():
            return Answer.SILENT
        code = self.account.run([*self._program("pg_isready"), "-t", "3"]).returncode
        return Answer(code) if code in {0, 1} else Answer.SILENT

    def ask(self, sql: str, password: str) -> str:
        """Return what the server answers as plain text."""
        command = [*self._program("psql"), "-XAtqw", "-v", "ON_ERROR_STOP=1", "-c", sql]
        answer = self.account.run(command, variables={"PGPASSWORD": password, "PGCONNECT_TIMEOUT": "10"})
        if answer.returncode:
            raise PostgresError(
                f"PostgreSQL runs but refuses us: {answer.stderr.strip()}\nIf the password in postgres.json is not the"
                " cluster's, put back the file that was made with it."
            )
        return answer.stdout.strip()

    def ensure_database(self, password: str) -> None:
        """Create the database `foliot` unless it is there; a crash in between leaves it to the next start."""
        if not self.ask("SELECT 1 FROM pg_database WHERE datname = 'foliot'", password):
            self.ask("CREATE DATABASE foliot", password)

    def _program(self, name: str) -> list[str]:
        return [str(self.binaries.bin / name), "-h", str(self.socket), "-p", "5432", "-U", "foliot", "-d", "postgres"]


def wait_until_ready(door: Door, alive: Callable[[], bool], *, silent: float, recovering: float) -> bool:
    """Wait for a server to accept; give up when it dies, or after so many seconds of silence or of recovery."""
    # Replaying the log after a crash may take minutes and ends by itself: it deserves more patience than silence.
    began, pause = time.monotonic(), 0.01
    while alive():
        answer = door.knock()
        if answer is Answer.ACCEPTS:
            return True
        if time.monotonic() - began > (recovering if answer is Answer.REJECTS else silent):
            return False
        # Every refused knock is a line in the server's log.
        time.sleep(pause)
        pause = min(pause * 1.3, 0.5)
    return False
