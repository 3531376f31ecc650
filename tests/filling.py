"""Back-fills as tests ask for them: ten days of a daily job."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from foliot.domain.backfill import Backfill, Order, Range, Reprocess
from foliot.domain.ids import decode
from foliot.services.operate import Operator
from foliot.wire.operations import OperationView
from operating import settle_down
from world import World, utc

FIRST = utc("2026-01-01 00:00")
LAST = utc("2026-01-10 00:00")
DAYS = [FIRST + timedelta(days=number) for number in range(10)]


def asked(**fields: Any) -> Backfill:
    since, until = fields.pop("since", FIRST), fields.pop("until", LAST)
    usual = {"name": "", "concurrency": 3, "order": Order.OLDEST, "reprocess": Reprocess.NONE}
    return Backfill(range=Range(since, until), **{**usual, **fields})


async def daily(world: World, **fields: Any) -> int:
    return await world.job_id(every="PT24H", **fields)


async def begin(world: World, job: int, **fields: Any) -> int:
    """Ask for a back-fill; its number."""
    body = await world.operations.backfill(world.tenant, job, asked(**fields))
    made = msgspec.json.decode(body, type=OperationView)
    assert made.operation_id is not None
    return decode("op", made.operation_id)


async def finish(world: World, duty: Operator) -> list[datetime]:
    """Work until every back-fill has ended; the instants in the order in which they were run."""
    worker, seen = await world.worker(), []
    while await world.value("SELECT count(*) FROM operation WHERE finished_at IS NULL"):
        await settle_down(duty)
        taken = await worker.claim(1)
        seen += [run.scheduled_at for run in taken]
        await worker.settle(taken)
        await recount(world)
    return seen


async def recount(world: World) -> None:
    """The counters of every operation say what its items and the tables of runs say, whenever one looks."""
    rows = await world.sql(
        "SELECT o.*, counted.*, (SELECT count(*) FROM run WHERE run.origin = o.id) AS runs"
        "  FROM operation o CROSS JOIN LATERAL ("
        "   SELECT count(i.run) AS handed_out, count(DISTINCT i.run) AS once,"
        "          count(*) FILTER (WHERE i.state = 4) AS good,"
        "          count(*) FILTER (WHERE i.state IN (5, 7)) AS bad, count(*) FILTER (WHERE i.state = 6) AS called_off,"
        "          count(*) FILTER (WHERE i.run IS NULL AND i.state IS NULL) AS waiting"
        "     FROM operation_item i WHERE i.operation = o.id) AS counted"
    )
    for row in rows:
        assert row["submitted"] == row["handed_out"] == row["once"]
        assert (row["succeeded"], row["failed"], row["cancelled"]) == (row["good"], row["bad"], row["called_off"])
        assert row["left_over"] == row["waiting"]
        assert row["runs"] <= row["live"] <= row["concurrency"]
        assert row["finished_at"] is None or row["live"] == 0
