"""What came up late was missed, or had to be caught up with: by the oracle's rule, whatever the product's own says."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import pytest

from chaos.oracle import still_wanted
from chaos.watch import Watch
from foliot.domain.ids import encode
from foliot.kit.postgres import PostgresServer

AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
NONE, LATEST, ALL = range(3)
HOUR = 3_600


@pytest.mark.parametrize(
    ("mode", "late", "is_last", "wanted"),
    [
        ("all", 600, False, True),
        ("all", 601, True, False),
        ("latest", 600, True, True),
        ("latest", 600, False, False),
        ("latest", 601, True, False),
        ("none", 31, True, False),
    ],
)
def test_a_late_instant_is_wanted_inside_the_window_and_by_its_mode(
    mode: str, late: float, is_last: bool, wanted: bool
):
    assert still_wanted(mode, 600, late, is_last=is_last) is wanted


async def _missed(dsn: str, job: int) -> list[tuple[Any, ...]]:
    found = await Watch(cast("PostgresServer", SimpleNamespace(dsn=dsn))).missed()
    own = [row for rows in found.values() for row in rows if row["job"] == encode("job", job)]
    return [(row["from"], row["through"], row["opened"]) for row in own]


async def test_the_word_of_the_product_is_not_asked_for(dsn: str):
    """Two instants, a minute apart, came up late; all before them were missed by everybody. The product wants none."""
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "foliot, public"})
    await connection.execute(
        """
        CREATE OR REPLACE FUNCTION catches_up(mode smallint, within integer, until timestamptz, at timestamptz,
            opened_at timestamptz, following timestamptz, late_through timestamptz) RETURNS boolean
            LANGUAGE sql IMMUTABLE RETURN false
        """
    )
    tenant = await connection.fetchval("INSERT INTO tenant (name) VALUES ('late') RETURNING id")
    second, opened = AT + timedelta(minutes=1), AT + timedelta(minutes=2)
    firing = (
        "INSERT INTO firing (schedule, at, through, missed, opened_at, following, late_through)"
        " VALUES (7, $1, $2, $3, $4, $5, $6)"
    )
    before = AT - timedelta(hours=1)
    await connection.execute(firing, before, AT - timedelta(seconds=1), True, opened, None, None)
    late_through = opened - timedelta(seconds=30)
    await connection.execute(firing, AT, AT, False, opened, second, late_through)
    await connection.execute(firing, second, second, False, opened, second + timedelta(minutes=1), late_through)
    subscription = (
        "INSERT INTO subscription (schedule, job, after, tenant, spec, exclusive, payload, catch_up, catch_up_window)"
        " VALUES (7, $1, $2, $3, 1, true, '', $4, $5)"
    )
    kinds = {1: (NONE, HOUR), 2: (LATEST, HOUR), 3: (ALL, HOUR), 4: (ALL, 90)}
    for job, (mode, window) in kinds.items():
        await connection.execute(subscription, job, AT - timedelta(minutes=5), tenant, mode, window)
    await connection.close()
    gap = "2026-07-01T11:55:00.000001Z", "2026-07-01T11:59:59Z"
    first, last = ("2026-07-01T12:00:00Z",) * 2, ("2026-07-01T12:01:00Z",) * 2
    expected = {1: [gap, first, last], 2: [gap, first], 3: [gap], 4: [gap, first]}
    for job, ranges in expected.items():
        assert await _missed(dsn, job) == [(*each, "2026-07-01T12:02:00Z") for each in ranges], job
