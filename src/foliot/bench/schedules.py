"""The measurements with millions of schedules in place, with the processes of the product around them."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from foliot.bench.bed import APP, Bed, free_port
from foliot.bench.generate import BURST_KEY, QUIET, QUIET_KEY
from foliot.bench.latency import RATE
from foliot.bench.load import Load
from foliot.bench.rest import let_disk_rest
from foliot.bench.sample import reading
from foliot.bench.sections import FULL, REPEATS
from foliot.bench.targets import Found, schedule_targets, summarise
from foliot.bench.template import Bar, Template, template
from foliot.bench.watch import Watch, peak_memory

LEAD: Final = 20.0
"""Seconds of the steady load before the window, at most as long as that: caches fill, and what the preparation
has just written to disk goes into the log whole once more, as after any checkpoint."""
TAIL: Final = 2.0
MINUTE: Final = 60
BURST_STEP: Final = 20
"""Seconds between two instants of the burst's schedule; a run of full length wakes it at a minute's first one."""
PATIENCE: Final = 600.0
AD_HOC: Final = 3.0
FRESH: Final = 20.0
"""Seconds, at most, in which fresh fires are looked at with and without a backlog."""
LATE_INSTANTS: Final = 10
"""Of the burst's schedule, each with all its jobs: of ten million a million late runs."""

_FIRST_FIRING: Final = """
SELECT extract(epoch FROM least((SELECT min(opened_at) FROM firing),
                                (SELECT min(started_at) FROM history WHERE job IS NOT NULL)) - $1)::float8
"""
# One after the other: the last one walks over what has just been deleted, and must not be asked while others have work.
_IS_DRAINED: Final = (
    "SELECT NOT EXISTS (SELECT FROM schedule WHERE next_at <= $1)",
    "SELECT NOT EXISTS (SELECT FROM timer WHERE due_at <= $1)",
    "SELECT NOT EXISTS (SELECT FROM firing WHERE closed_at IS NULL AND at <= $1)",
    "SELECT NOT EXISTS (SELECT FROM run WHERE id > 0 AND due_at <= $1)",
)
_STEADY: Final = """
SELECT count(*) FILTER (WHERE state = 4) AS settled, count(*) FILTER (WHERE state = 8) AS skipped,
       count(*) - count(DISTINCT (job, scheduled_at)) AS twice,
       count(*) FILTER (WHERE finished_at > $2) AS unsettled,
       percentile_disc(ARRAY[0.5, 0.95, 0.99, 1])
           WITHIN GROUP (ORDER BY extract(epoch FROM started_at - due_at)::float8) AS late
  FROM history WHERE job IS NOT NULL AND scheduled_at > $1 AND scheduled_at <= $2 AND state IN (4, 8)
"""
_SETTLED_IN: Final = "SELECT count(*) FROM history WHERE state = 4 AND finished_at > $1 AND finished_at <= $2"
_MISSED: Final = "SELECT count(*) FROM firing WHERE missed AND through > $1 AND at <= $2"
_WAKE: Final = "UPDATE schedule SET cursor = clock_timestamp(), next_at = $2 WHERE key = ANY ($1)"
_LULL: Final = "UPDATE schedule SET next_at = NULL WHERE key = ANY ($1) AND next_at > $2"
# As after an outage: instants that came up late, and every job of the crowd wants all of them.
_WANT_ALL: Final = """
UPDATE subscription s
   SET after = least(s.after, $2::timestamptz - interval '1 hour'), catch_up = 2, catch_up_window = 86400
  FROM schedule WHERE schedule.key = $1 AND s.schedule = schedule.id
"""
_OVERSLEEP: Final = """
INSERT INTO firing (schedule, at, through, following, late_through, missed, opened_at)
SELECT id, at, at, at + interval '7 seconds', $2, false, clock_timestamp()
  FROM schedule CROSS JOIN generate_series(1, $3::int) AS number
 CROSS JOIN LATERAL (SELECT $2::timestamptz - interval '1 minute' - number * interval '7 seconds' AS at) AS instant
 WHERE key = $1
"""
_FORGIVE: Final = "DELETE FROM firing WHERE late_through IS NOT NULL AND closed_at IS NULL"
_FRESH: Final = """
SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - due_at)::float8)
  FROM history WHERE job IS NOT NULL AND state = 4 AND scheduled_at > $1 AND scheduled_at <= $2
"""
_FRESH_LEFT: Final = """
SELECT EXISTS (SELECT FROM schedule WHERE next_at > $1 AND next_at <= $2)
    OR EXISTS (SELECT FROM firing WHERE closed_at IS NULL AND late_through IS NULL AND at <= $2)
    OR EXISTS (SELECT FROM run WHERE id > 0 AND scheduled_at > $1 AND due_at <= $2)
"""
_MADE_UP_FOR: Final = "SELECT count(*) FROM history WHERE state = 4 AND scheduled_at <= $1 AND finished_at > $2"
_AWAKE: Final = "SELECT EXISTS (SELECT FROM schedule WHERE key = ANY ($1) AND next_at IS NOT NULL)"
_READY: Final = """
SELECT max(closed_at) FROM firing JOIN schedule ON schedule.id = firing.schedule WHERE key = $1 AND at = $2
"""
_STARTED: Final = """
SELECT count(*) AS runs, max(history.started_at) AS last
  FROM history JOIN job ON job.id = history.job JOIN schedule ON schedule.id = job.schedule
  JOIN tenant ON tenant.id = history.tenant
 WHERE schedule.key = $1 AND history.scheduled_at = $2 AND history.state = 4 AND (tenant.name = $3) = $4
"""

Say = Callable[[str], None]


def lead(seconds: float) -> float:
    return min(LEAD, seconds)


async def measure_schedules(load: Load, place: Path, seconds: float, say: Say, bar: Bar) -> dict[str, Any]:
    """Medians of three, each with `seconds` of the steady load."""
    async with template(load, place, say, bar) as made:
        repeats = []
        await let_disk_rest(made.bed.dsn, seconds, lambda text: say(f"schedules: {text}"))
        for number in range(1, REPEATS + 1):
            say(f"schedules: repeat {number} of {REPEATS}, with {load.jobs:,} jobs in place")
            repeats.append(await Repeat(made, seconds, say).run())
        version = await made.bed.value("SHOW server_version")
        head = {"jobs": load.jobs, "perSecond": load.rate, "burst": load.burst, "seconds": seconds}
        summary = summarise(repeats, schedule_targets(load.rate))
        told = {**head, "writtenIn": made.made.seconds, **summary, "repeats": repeats}
        return {"postgres": version, "schedules": told}


class Repeat:
    """All measurements once."""

    def __init__(self, made: Template, seconds: float, say: Say) -> None:
        self._made = made
        self._bed: Bed = made.bed
        self._load = made.load
        self._seconds = seconds
        self._say = say
        self._found: Found = {}

    async def run(self) -> Found:
        self._say("schedules: bringing the load up to the present")
        begin = await self._made.prepare(lead(self._seconds) + self._seconds + TAIL)
        async with self._bed.process("worker", APP) as worker:
            await self._until("SELECT EXISTS (SELECT FROM worker WHERE state = 0)")
            asked, port = await self._clock(), free_port()
            async with self._bed.process("scheduler", FOLIOT_METRICS_PORT=str(port)) as scheduler:
                await self._start_up(asked)
                await self._steady(begin, worker=worker, scheduler=scheduler)
                await self._burst()
                self._found["chunk"] = round(await reading(port, "foliot_longest_firing_seconds") * 1_000, 1)
                self._found["freshAlone"] = await self._fresh()
                await self._beside_backlog()
                self._found["memory"] = round((peak_memory(scheduler) or 0) / 1e6, 1)
            await self._ad_hoc()
        return self._found

    async def _start_up(self, asked: datetime) -> None:
        await self._until(_FIRST_FIRING + " IS NOT NULL", asked)
        self._found["startUp"] = round(await self._bed.value(_FIRST_FIRING, asked), 2)

    async def _steady(self, begin: datetime, **processes: int) -> None:
        after = begin + timedelta(seconds=lead(self._seconds))
        until = after + timedelta(seconds=self._seconds)
        await self._wait_for(after)
        watch = Watch(self._made.server.pid or 0, **processes)
        await self._wait_for(until)
        self._found["busy"] = watch.busy()
        await self._until_drained(until)
        async with self._bed.database.connection() as connection:
            row = await connection.fetchrow(_STEADY, after, until)
            settled_in = await connection.fetchval(_SETTLED_IN, after, until)
            missed = await connection.fetchval(_MISSED, after, until)
        due = self._load.due_within(begin, after, until)
        self._check(due, row, missed)
        late = [round(each * 1_000, 1) for each in row["late"] or [0.0] * 4]
        self._found |= dict(zip(("p50", "p95", "p99", "max"), late, strict=True))
        self._found |= {"due": due, "dueRate": round(due / self._seconds), "skipped": row["skipped"]}
        self._found["rate"] = round(settled_in / self._seconds)
        self._found |= {"unsettled": row["unsettled"], "unsettledShare": round(100 * row["unsettled"] / max(due, 1), 2)}
        self._say(f"schedules: {self._found['rate']:,} runs/s, late by p95 {late[1]:g} ms, p99 {late[2]:g} ms")

    def _check(self, due: int, row: Any, missed: int) -> None:
        """Every instant of the window is on record, once: run, skipped, or missed by a scheduler that was too late."""
        recorded = row["settled"] + row["skipped"]
        if row["twice"] or (recorded != due and not missed) or recorded > due:
            raise AssertionError(f"{due:,} runs were due, {recorded:,} are on record, {row['twice']:,} of them again")
        self._found["missed"] = due - recorded

    async def _burst(self) -> None:
        at = next_boundary(await self._clock(), MINUTE if self._seconds >= FULL else BURST_STEP)
        keys = [BURST_KEY, QUIET_KEY]
        await self._bed.value(_WAKE, keys, at)
        while await self._bed.value(_AWAKE, keys):
            await asyncio.sleep(0.05)
            await self._bed.value(_LULL, keys, at)
        await self._until_drained(at)
        ready = await self._bed.value(_READY, BURST_KEY, at)
        self._found["burstReady"] = _milliseconds(ready, at)
        self._found["burstStarted"] = await self._last_start(BURST_KEY, at, self._load.burst, quiet=False)
        self._found["quietAlone"] = await self._last_start(QUIET_KEY, at, 1, quiet=True)
        self._found["quietShared"] = await self._last_start(BURST_KEY, at, 1, quiet=True)
        self._say(f"schedules: {self._load.burst:,} jobs of one instant ready in {self._found['burstReady']:,.0f} ms")

    async def _beside_backlog(self) -> None:
        """Fresh fires while the crowd of the burst makes up for an outage, at the scheduler's usual pace."""
        now = await self._clock()
        await self._bed.value(_WANT_ALL, BURST_KEY, now)
        await self._bed.value(_OVERSLEEP, BURST_KEY, now, LATE_INSTANTS)
        self._found["freshBeside"] = await self._fresh()
        self._found["madeUpFor"] = await self._bed.value(_MADE_UP_FOR, now - timedelta(minutes=1), now)
        await self._bed.value(_FORGIVE)
        await self._until_drained(now)

    async def _fresh(self) -> float:
        """How late those of the next seconds start, p95, in milliseconds."""
        after = await self._clock()
        until = after + timedelta(seconds=min(FRESH, self._seconds))
        await self._wait_for(until)
        await self._until(f"SELECT NOT ({_FRESH_LEFT})", after, until)
        late = await self._bed.value(_FRESH, after, until)
        return round((late or 0.0) * 1_000, 1)

    async def _last_start(self, key: str, at: datetime, count: int, *, quiet: bool) -> float:
        async with self._bed.database.connection() as connection:
            row = await connection.fetchrow(_STARTED, key, at, QUIET, quiet)
        if row["runs"] != count:
            raise AssertionError(f"{count:,} jobs were due at {at}, and {row['runs']:,} ran")
        return _milliseconds(row["last"], at)

    async def _ad_hoc(self) -> None:
        """With no scheduler, and millions of instants coming up behind its back."""
        self._bed.notes.unlink(missing_ok=True)
        made = await self._bed.tool("foliot.bench.produce", "trickle", AD_HOC, RATE)
        async with asyncio.timeout(60):
            while len(notes := self._notes()) < made["made"]:  # noqa: ASYNC110 - the event would be in another process
                await asyncio.sleep(0.1)
        self._found["adHoc"] = round(max(began - sent for sent, _, began in notes) * 1_000, 1)

    def _notes(self) -> list[tuple[float, ...]]:
        lines = self._bed.notes.read_text(encoding="utf-8").splitlines() if self._bed.notes.exists() else []
        return [tuple(map(float, line.split())) for line in lines]

    async def _clock(self) -> datetime:
        return await self._bed.value("SELECT clock_timestamp()")  # type: ignore[no-any-return]

    async def _wait_for(self, instant: datetime) -> None:
        await asyncio.sleep(max(0.0, (instant - await self._clock()).total_seconds()))

    async def _until_drained(self, instant: datetime) -> None:
        """Until everything up to this instant has left."""
        for condition in _IS_DRAINED:
            await self._until(condition, instant, pause=0.5)

    async def _until(self, condition: str, *arguments: Any, pause: float = 0.1) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await self._bed.value(condition, *arguments):  # noqa: ASYNC110 - no event to await
                await asyncio.sleep(pause)


def next_boundary(now: datetime, step: int) -> datetime:
    """The next instant on a boundary of `step` seconds that leaves time to set it: four seconds and more."""
    reached = int(now.timestamp()) + 4
    return datetime.fromtimestamp(reached - reached % step + step, UTC)


def _milliseconds(instant: datetime, since: datetime) -> float:
    return round((instant - since).total_seconds() * 1_000, 1)
