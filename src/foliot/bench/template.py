"""A load kept on disk, so that the bench can be repeated: made once, and brought up to the present before each use."""

import hashlib
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from foliot.bench.bed import Bed
from foliot.bench.generate import BURST_KEY, FUNCTIONS, QUIET_KEY, VERSION, Generator
from foliot.bench.load import LATER, ODD, SCATTER, Load
from foliot.bench.machine import ROOT
from foliot.domain.errors import FoliotError
from foliot.domain.ids import HIGHEST
from foliot.kit.postgres import PostgresServer
from foliot.store.database import Connection, connect
from foliot.store.migrate import shipped

BYTES_PER_JOB: Final = 1_500
"""On disk, with indexes and the log of writing them: what must be free before it is begun."""
TIMERS_PER_SECOND: Final = 20_000
"""Timers that we allow a second to call up; if it takes longer, it is done again with a later beginning."""

Bar = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""A progress bar over so many jobs; told how many more are done."""

_FORGET: Final = """
TRUNCATE run, ready, claim, worker, history, dead_letter, flow, seat, slot, knock, node, graph_run, graph_shape, event,
         outside, firing, past_subscription;
DELETE FROM timer WHERE id < 0;
SELECT lay_ballast();
UPDATE lane SET v = 0;
"""
_NTH: Final = "SELECT id FROM job WHERE id >= $1 AND kind = 1 ORDER BY id OFFSET $2 LIMIT 1"
_FIRST_UNMOVED: Final = "SELECT job FROM timer WHERE due_at >= $1 AND id > 0 ORDER BY due_at LIMIT 1"
_TAKE_BACK: Final = "DELETE FROM timer WHERE id > 0 AND job BETWEEN $1 AND $2 AND id BETWEEN $1 AND $2 + 1"
# Those called up fall due in another order than they were made in, as reminders do.
_CALL_UP: Final = """
INSERT INTO timer (id, tenant, spec, job, origin, scheduled_at, due_at, payload)
SELECT run, tenant, spec, id, 1, due, due, payload
  FROM (SELECT *, CASE WHEN place < $3 THEN $4::timestamptz ELSE $5::timestamptz END
                  + (place * 1000 / $6::bigint * 1000 + 1 + place % $7) * interval '1 us' AS due
          FROM (SELECT *, CASE WHEN n < $3 THEN n * $8::bigint % $3 ELSE n END AS place
                  FROM (SELECT *, row_number() OVER (ORDER BY id) - 1 AS n
                          FROM job WHERE id BETWEEN $1 AND $2 AND kind = 1) AS numbered) AS placed) AS called
"""
# A measurement that was broken off may have left the burst awake.
_LULL: Final = "UPDATE schedule SET next_at = NULL WHERE key = ANY ($1) AND next_at IS NOT NULL"
# Those that are still to come are right as they are.
_CATCH_UP: Final = """
UPDATE schedule SET cursor = now(), next_at = pg_temp.next_of(key, now()) WHERE next_at <= now()
"""


class Made(msgspec.Struct, frozen=True):
    """What must be known of a load that is there: written last, so what has it is whole."""

    jobs: int
    first_timer: int
    seconds: float


class Template:
    """A server of its own, with the load in it."""

    def __init__(self, server: PostgresServer, bed: Bed, load: Load, made: Made) -> None:
        self.server = server
        self.bed = bed
        self.load = load
        self.made = made

    async def prepare(self, seconds: float) -> datetime:
        """Forget the last measurement and call up timers for `seconds`; gives the instant of the first of them.

        Cheap, because only that part of the timers is moved and only the schedules that have come up since are put
        forward. What an owner wrote into a job whose timer was moved still names the day it had before.
        """
        count = self.load.called_up(seconds)
        connection = await connect(self.bed.dsn, statement_timeout="0", synchronous_commit="off")
        try:
            await connection.execute(FUNCTIONS)
            jobs = self.made.first_timer, await self._last_to_move(connection, count)
            while True:
                begin = await self._begin(connection, count)
                async with connection.transaction():
                    await connection.execute(_FORGET)
                    await connection.execute(_TAKE_BACK, *jobs, timeout=600)
                    moves = count, begin, LATER, self.load.timer_rate, ODD, SCATTER
                    await connection.execute(_CALL_UP, *jobs, *moves, timeout=600)
                await connection.execute(_LULL, [BURST_KEY, QUIET_KEY])
                await connection.execute(_CATCH_UP, timeout=600)
                await connection.execute("CHECKPOINT", timeout=600)
                if begin > await connection.fetchval("SELECT clock_timestamp()") + timedelta(seconds=2):
                    return begin
        finally:
            await connection.close()

    async def _begin(self, connection: Connection, count: int) -> datetime:
        now: datetime = await connection.fetchval("SELECT clock_timestamp()")
        return now + timedelta(seconds=5 + count / TIMERS_PER_SECOND)

    async def _last_to_move(self, connection: Connection, count: int) -> int:
        """The last job whose timer is wanted, or was called up before and has to go back."""
        wanted: int = await connection.fetchval(_NTH, self.made.first_timer, count - 1)
        unmoved: int | None = await connection.fetchval(_FIRST_UNMOVED, LATER)
        return max(wanted, unmoved or HIGHEST - 1)


@asynccontextmanager
async def template(load: Load, place: Path, say: Callable[[str], None], bar: Bar) -> AsyncIterator[Template]:
    """The load in a server that runs, made now if this release has none of it on disk."""
    size = f"{load.jobs}" if load.crowd is None else f"{load.jobs}-burst-{load.crowd}"
    home = place / f"schedules-{size}-{_fingerprint()}"
    note = home / "made.json"
    if not note.exists():
        _make_room(place, load)
        await _make(home, load, say, bar)
    made = msgspec.json.decode(note.read_bytes(), type=Made)
    with PostgresServer(home) as server:
        async with Bed.opened(server.dsn) as bed:
            yield Template(server, bed, load, made)


async def _make(home: Path, load: Load, say: Callable[[str], None], bar: Bar) -> None:
    say(f"schedules: writing {load.jobs:,} jobs into {home}; kept for the next time")
    began = time.monotonic()
    with PostgresServer(home) as server:
        async with Bed.made(server.dsn) as bed:
            with bar(load.jobs) as advance:
                generator = Generator(server.dsn, bed.database, load, advance)
                await generator.run()
            say("schedules: vacuum and statistics")
            connection = await connect(server.dsn, statement_timeout="0")
            await connection.execute("VACUUM (ANALYZE)", timeout=3_600)
            await connection.execute("CHECKPOINT", timeout=3_600)
            await connection.close()
    made = Made(load.jobs, generator.first_timer, round(time.monotonic() - began, 1))
    (home / "made.json").write_bytes(msgspec.json.encode(made))
    say(f"schedules: written in {made.seconds:.0f} s")


def _fingerprint() -> str:
    """Changes with the schema and with the generator: rows of another release are not measured."""
    told = "".join(migration.checksum for migration in shipped()) + str(VERSION)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _make_room(place: Path, load: Load) -> None:
    """Remove what was half made or belongs to another release, and refuse before the disk is full."""
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("schedules-*"):
        if not (old / "made.json").exists() or not old.name.endswith(_fingerprint()):
            remove(old)
    needed, free = (load.jobs + load.burst) * BYTES_PER_JOB, shutil.disk_usage(place).free
    if free < needed:
        raise FoliotError(
            f"{load.jobs:,} schedules take {needed / 1e9:.0f} GB in {place}, and {free / 1e9:.0f} GB are free",
            "make room, choose another place with FOLIOT_HOME, or take fewer: --schedules 1000000",
        )


def remove(home: Path) -> None:
    """With the cluster, which may live elsewhere when its account cannot get here."""
    shutil.rmtree((home / "postgres").resolve(), ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


def usual_place() -> Path:
    """In FOLIOT_HOME if that is set, else in the checkout."""
    if (home := os.environ.get("FOLIOT_HOME")) or not (ROOT / ".git").exists():
        return Path(home or ".foliot").absolute() / "bench"
    return ROOT / ".foliot-bench"


@contextmanager
def no_bar(_: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None
