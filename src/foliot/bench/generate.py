"""Writes a load into an empty database, set by set: the very rows that the API would write."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec

from foliot.bench.load import LATER, ODD, PERIODS, SHORTEST, Load
from foliot.bench.produce import PAYLOAD, specs_of, tenant_name
from foliot.domain.cron import Cron
from foliot.domain.ids import BLOCK_SIZE, Block, mint
from foliot.domain.schedule import canonical_key
from foliot.services.control import Control
from foliot.services.tenants import Tenants
from foliot.store.database import Connection, Database, connect
from foliot.store.specs import SpecBook, SpecRef
from foliot.store.statements import SQL
from foliot.store.tenants import find_tenant
from foliot.wire.jobs import JobBody, draft_of

VERSION: Final = 3
"""Rises when other rows are written for the same load: a template on disk is of one version."""
HANDS: Final = 2
CHUNK: Final = 32
"""Blocks of ids per statement: about a second of work, so that the bar moves."""
LARGEST_BATCH: Final = 10_000
QUIET: Final = "bench-quiet"
"""The tenant with a single job beside the burst."""
BURST_CRON: Final = "*/20 * * * * *"
BURST_KEY: Final = canonical_key(Cron(BURST_CRON, "UTC"))
QUIET_EVERY: Final = "PT20S"
QUIET_KEY: Final = f"every|{QUIET_EVERY}|-"
"""Another schedule with the same instants, so that the quiet tenant's job does not share the fate of the crowd."""

FUNCTIONS: Final = """
CREATE OR REPLACE FUNCTION pg_temp.written(at timestamptz) RETURNS text LANGUAGE sql STABLE
    RETURN to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
CREATE OR REPLACE FUNCTION pg_temp.next_of(key text, at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE
    RETURN CASE WHEN key LIKE 'every|%' THEN (
        SELECT anchor + (floor(extract(epoch FROM at - anchor) / extract(epoch FROM period)) + 1)::float8 * period
          FROM (SELECT coalesce(nullif(split_part(key, '|', 3), '-'), 'epoch')::timestamptz AS anchor,
                       split_part(key, '|', 2)::interval AS period) AS every)
    ELSE (
        SELECT fire + CASE WHEN fire <= at THEN interval '1 hour' ELSE interval '0' END
          FROM (SELECT date_trunc('hour', at) + make_interval(mins => part[cardinality(part) - 4]::int, secs =>
                       CASE WHEN cardinality(part) = 6 THEN part[1]::int ELSE 0 END) AS fire
                  FROM string_to_array(split_part(key, '|', 2), ' ') AS part) AS hourly)
    END;
"""
_CRON_SCHEDULES: Final = """
INSERT INTO schedule (tenant, key, cursor, next_at) SELECT tenant, key, now(), pg_temp.next_of(key, now())
  FROM unnest($1::int[], $2::text[]) WITH ORDINALITY AS x(tenant, key, place) ORDER BY place
RETURNING id
"""
_CRON_JOBS: Final = """
INSERT INTO job (id, tenant, name, spec, kind, exclusive, schedule, timing, payload)
SELECT new.id, owner.tenant, 'report', owner.spec, 2, true, shared.id, shared.timing::jsonb, $6
  FROM (SELECT block.first + place AS id, $2::bigint + (block.number - 1) * 4096 + place AS n
          FROM unnest($1::bigint[]) WITH ORDINALITY AS block(first, number), generate_series(0, 4095) AS place) AS new
  JOIN unnest($7::bigint[], $8::text[]) WITH ORDINALITY AS shared(id, timing, number)
    ON shared.number = 1 + new.n % cardinality($7)
  JOIN unnest($4::int[], $5::int[]) WITH ORDINALITY AS owner(tenant, spec, number)
    ON owner.number = 1 + new.n % cardinality($7) % cardinality($4)
 WHERE new.n < $3
"""
_SET_ASIDE: Final = """
SELECT setval(name, nextval(name) + $1) FROM CAST(pg_get_serial_sequence('schedule', 'id') AS regclass) AS name
"""
_INTERVAL_JOBS: Final = """
WITH new AS MATERIALIZED (
    SELECT block.first + place AS id, owner.tenant, owner.spec, $7::bigint + n AS schedule,
           CASE WHEN seconds % 3600 = 0 THEN 'PT' || seconds / 3600 || 'H'
                WHEN seconds % 60 = 0 THEN 'PT' || seconds / 60 || 'M' ELSE 'PT' || seconds || 'S' END AS every,
           pg_temp.written($8::timestamptz + (n * 1000 / $9::bigint * 1000 + 1 + n % $10) * interval '1 us') AS anchor
      FROM unnest($1::bigint[]) WITH ORDINALITY AS block(first, number)
     CROSS JOIN generate_series(0, 4095) AS place
     CROSS JOIN LATERAL (SELECT $2::bigint + (block.number - 1) * 4096 + place AS n) AS numbered
     CROSS JOIN LATERAL (SELECT $11::bigint + n * 7919 % $12::bigint AS seconds) AS lasting
      JOIN unnest($4::int[], $5::int[]) WITH ORDINALITY AS owner(tenant, spec, number)
        ON owner.number = 1 + ($13::bigint + n) % cardinality($4)
     WHERE n < $3
), made AS (
    INSERT INTO schedule (id, tenant, key, cursor, next_at) OVERRIDING SYSTEM VALUE
    SELECT schedule, tenant, key, now(), pg_temp.next_of(key, now())
      FROM (SELECT schedule, tenant, 'every|' || every || '|' || anchor AS key FROM new) AS keyed
)
INSERT INTO job (id, tenant, name, spec, kind, exclusive, schedule, timing, payload)
SELECT id, tenant, 'probe', spec, 2, true, schedule, jsonb_build_object('every', every, 'scheduleAt', anchor), $6
  FROM new
"""
_SUBSCRIPTIONS: Final = """
INSERT INTO subscription (schedule, job, after, tenant, spec, exclusive, payload)
SELECT schedule, id, now(), tenant, spec, exclusive, payload FROM job WHERE id BETWEEN $1 AND $2
"""
_TIMER_JOBS: Final = """
INSERT INTO job (id, tenant, name, spec, kind, exclusive, run, timing, payload)
SELECT block.first + 2 * place, owner.tenant, 'reminder', owner.spec, 1, true, block.first + 2 * place + 1,
       jsonb_build_object('scheduleAt', pg_temp.written(
           $7::timestamptz + (n * 1000 / $8::bigint * 1000 + 1 + n % $9) * interval '1 us')), $6
  FROM unnest($1::bigint[]) WITH ORDINALITY AS block(first, number)
 CROSS JOIN generate_series(0, 2047) AS place
 CROSS JOIN LATERAL (SELECT $2::bigint + (block.number - 1) * 2048 + place AS n) AS numbered
  JOIN unnest($4::int[], $5::int[]) WITH ORDINALITY AS owner(tenant, spec, number)
    ON owner.number = 1 + ($10::bigint + n) % cardinality($4)
 WHERE n < $3
"""
_TIMERS: Final = """
INSERT INTO timer (id, tenant, spec, job, origin, scheduled_at, due_at, payload)
SELECT run, tenant, spec, id, 1, due, due, payload
  FROM (SELECT *, (timing->>'scheduleAt')::timestamptz AS due FROM job WHERE id BETWEEN $1 AND $2) AS job
"""

Advance = Callable[[int], None]
"""Told how many jobs more are written."""
Step = Callable[[Connection], Any]
Item = TypeVar("Item")


class Generator:
    """Fills one migrated, empty database."""

    def __init__(self, dsn: str, database: Database, load: Load, advance: Advance) -> None:
        self._dsn = dsn
        self._database = database
        self._load = load
        self._advance = advance
        self.first_timer = 0
        """The id of the first one-time job; those after it rise with their instants."""

    async def run(self) -> None:
        refs = await specs_of(self._database, "noop")
        async with _hand(self._dsn) as connection:
            crons = await self._crons(connection, refs)
            intervals = await self._intervals(connection, refs)
            timers = await self._timers(connection, refs)
        steps = iter([*crons, *intervals, *timers])
        async with asyncio.TaskGroup() as group:
            for _ in range(HANDS):
                group.create_task(self._work(steps))
        await self._burst()

    async def _work(self, steps: Any) -> None:
        async with _hand(self._dsn) as connection:
            for step in steps:
                self._advance(await step(connection))

    async def _crons(self, connection: Connection, refs: Sequence[SpecRef]) -> list[Step]:
        load = self._load
        texts = [load.cron(place) for place in range(load.shared)]
        owners = [refs[place % len(refs)].tenant for place in range(load.shared)]
        rows = await connection.fetch(_CRON_SCHEDULES, owners, [canonical_key(Cron(text, "UTC")) for text in texts])
        timings = [msgspec.json.encode({"cronExpression": text, "timezone": "UTC"}).decode() for text in texts]
        more = ([row["id"] for row in rows], timings)
        return await self._chunks(connection, load.crons, refs, (_CRON_JOBS, _SUBSCRIPTIONS), more)

    async def _intervals(self, connection: Connection, refs: Sequence[SpecRef]) -> list[Step]:
        load = self._load
        first = await connection.fetchval(_SET_ASIDE, load.intervals) - load.intervals
        since, rate = load.anchors
        more = (first, since, rate, ODD, SHORTEST, PERIODS, load.crons)
        return await self._chunks(connection, load.intervals, refs, (_INTERVAL_JOBS, _SUBSCRIPTIONS), more)

    async def _timers(self, connection: Connection, refs: Sequence[SpecRef]) -> list[Step]:
        load = self._load
        more = (LATER, load.timer_rate, ODD, load.crons + load.intervals)
        return await self._chunks(
            connection, load.timers, refs, (_TIMER_JOBS, _TIMERS), more, per_block=BLOCK_SIZE // 2
        )

    async def _chunks(
        self,
        connection: Connection,
        count: int,
        refs: Sequence[SpecRef],
        statements: tuple[str, str],
        more: tuple[Any, ...],
        per_block: int = BLOCK_SIZE,
    ) -> list[Step]:
        """What writes `count` jobs, in parts that any hand may do in any order; ids rise with the jobs' numbers."""
        blocks = await _draw_blocks(connection, -(-count // per_block))
        if per_block < BLOCK_SIZE:
            self.first_timer = blocks[0]
        owners = ([ref.tenant for ref in refs], [ref.id for ref in refs])

        def step(place: int, part: Sequence[int]) -> Step:
            number = place * CHUNK * per_block

            async def write(hand: Connection) -> int:
                async with hand.transaction():
                    await hand.execute(statements[0], part, number, count, *owners, PAYLOAD, *more)
                    await hand.execute(statements[1], part[0], part[-1] + BLOCK_SIZE - 1)
                return min(count, number + len(part) * per_block) - number

            return write

        return [step(place, part) for place, part in enumerate(_parts(blocks, CHUNK))]

    async def _burst(self) -> None:
        """The jobs of one instant, made as any others, and their schedules put to sleep until they are wanted."""
        control = Control(self._database, SpecBook(self._database), lambda _: None)
        crowd = {"name": "tick", "handler": "noop", "cronExpression": BURST_CRON, "payload": msgspec.Raw(PAYLOAD)}
        alone = {"name": "tick", "handler": "noop", "every": QUIET_EVERY, "payload": msgspec.Raw(PAYLOAD)}
        await Tenants(self._database).create(QUIET)
        for owner, body, count in (
            (tenant_name(0), crowd, self._load.burst),
            (QUIET, crowd, 1),  # the same recurrence as the crowd's
            (QUIET, alone, 1),
        ):
            tenant = await find_tenant(self._database, owner)
            draft = draft_of(msgspec.convert(body, JobBody))
            for part in _parts([draft] * count, LARGEST_BATCH):
                await control.create_batch(tenant or 0, part, render=lambda _: b"")
        async with self._database.connection() as connection:
            await connection.execute("UPDATE schedule SET next_at = NULL WHERE key = ANY ($1)", [BURST_KEY, QUIET_KEY])


@asynccontextmanager
async def _hand(dsn: str) -> AsyncIterator[Connection]:
    """A connection for writing in bulk: no foreign key is looked up thirty million times, no commit waited for."""
    connection = await connect(dsn, session_replication_role="replica", synchronous_commit="off", statement_timeout="0")
    try:
        await connection.execute(FUNCTIONS)
        yield connection
    finally:
        await connection.close()


async def _draw_blocks(connection: Connection, count: int) -> list[int]:
    """First ids of so many blocks, rising. Slowly enough: a thousand blocks of one millisecond would be the same."""
    firsts: list[int] = []
    while len(firsts) < count:
        rows = await connection.fetch(SQL["draw_blocks"], min(200, count - len(firsts)))
        firsts += [mint(Block(*row), 1)[0] for row in rows]
        await asyncio.sleep(0.002)
    return sorted(firsts)


def _parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[begin : begin + size] for begin in range(0, len(items), size))
