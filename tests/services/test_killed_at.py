"""The crash points of the API and of workers once more, with real processes and `kill -9`, 25 times in turn."""

import asyncio
import itertools
import multiprocessing
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foliot.domain.outcome import Ending
from foliot.domain.states import State
from foliot.services.submit import Key
from foliot.store import fleet
from foliot.store.submission import NewRun
from services import victims
from world import NOOP, PATIENCE, Hand, World

REPEATS = 25
ONCE = msgspec.structs.replace(NOOP, delivery="atMostOnce", max_retries=0)
SILENT = timedelta(hours=1)

# A process that has imported all this waits to be copied: a victim lives for some milliseconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["foliot.worker.process", "foliot.worker.carrier", "foliot.services.submit"])


async def killed(deed: Callable[..., None], *arguments: Any) -> None:
    """Return when a process that does this has killed itself in the middle of it."""
    process = PROCESSES.Process(target=deed, args=arguments, daemon=True)
    process.start()
    await asyncio.to_thread(process.join, PATIENCE)
    assert process.exitcode == -signal.SIGKILL
    process.close()


@pytest.mark.timeout(120)
async def test_c1_and_c2_an_api_that_is_killed_has_made_all_or_nothing_and_a_repeated_call_makes_it_once(world: World):
    points = [
        ("remember", "before"),
        ("enqueue", "during"),
        ("COMMIT", "before"),
        ("COMMIT", "during"),
        ("COMMIT", "after"),
    ]
    ref = await world.specs.intern(world.tenant, NOOP)
    for number, (statement, when) in zip(range(REPEATS), itertools.cycle(points), strict=False):
        key = f"key {number}"
        await killed(victims.submit, world.database.dsn, world.tenant, key, statement, when)
        await nobody_writes(world)
        made = await world.count("run") - number
        assert made == await world.count("ready") - number
        assert made in ({0, 1} if (statement, when) == ("COMMIT", "during") else {int(when == "after")})
        keyed = Key(key, world.tenant, b"same", lambda ids: msgspec.json.encode(list(ids)))
        accepted = await world.submitter.submit([NewRun(ref, b"{}")], keyed)
        assert (accepted.repeated is not None) == bool(made)
        assert await world.count("run") == await world.count("ready") == number + 1
    assert len(await (await world.worker()).claim()) == REPEATS


@pytest.mark.timeout(120)
async def test_c1_and_c2_a_run_that_came_alone_is_there_whole_or_not_at_all_when_the_api_is_killed(world: World):
    made = 0
    for _, when in zip(range(REPEATS), itertools.cycle(["before", "during", "after"]), strict=False):
        await killed(victims.submit, world.database.dsn, world.tenant, None, "enqueue_alone", when)
        await nobody_writes(world)
        found = await world.count("run")
        assert found - made in {"before": {0}, "during": {0, 1}, "after": {1}}[when]
        assert found == await world.count("ready")
        made = found
    assert len(await (await world.worker()).claim()) == made


@pytest.mark.timeout(180)
@pytest.mark.parametrize("spec", [NOOP, ONCE], ids=["at least once", "at most once"])
async def test_c6_to_c8_what_a_killed_worker_had_is_run_again_or_never_and_what_it_had_told_stands(
    world: World, tmp_path: Path, spec: Any
):
    points = [
        ("claim", "after"),
        ("settle", "before"),
        ("settle", "after"),
        ("note_started", "after"),
        ("settle", "during"),
    ]
    successor, ledger = await world.worker(), tmp_path / "ledger"
    for number, (statement, when) in zip(range(REPEATS), itertools.cycle(points), strict=False):
        ledger.write_text("")
        (run,) = await world.submit(1, spec)
        await killed(victims.work, world.database.dsn, 1_000 + number, str(ledger), statement, when)
        await nobody_writes(world)
        begun = [tuple(map(int, line.split())) for line in ledger.read_text().splitlines()]
        settled = await world.value("SELECT count(*) FROM history WHERE run = $1 AND state = 4", run)
        assert settled in (
            {0, 1} if (statement, when) == ("settle", "during") else {int(when == "after" and statement == "settle")}
        )
        again = await taken_over(world, successor)
        if settled:
            assert again == []
            assert len(begun) == 1
        elif spec is ONCE and statement != "claim":
            assert again == []
            assert len(begun) == (statement == "settle"), "marked before it begins"
            (row,) = await world.sql("SELECT ending, state FROM history WHERE run = $1", run)
            assert tuple(row) == (Ending.UNKNOWN, State.UNKNOWN)
        else:
            assert [each.id for each in again] == [run]
            assert all(fence < again[0].fence for _, fence in begun)
            assert len(begun) == (statement != "claim")
            assert again[0].attempt == (statement != "claim")
            assert await successor.settle(again) == 1
        assert await world.value("SELECT count(*) FROM history WHERE run = $1 AND state > 3", run) == 1
    assert await world.count("run") == await world.count("ready") == await world.count("late_result") == 0


async def taken_over(world: World, successor: Hand) -> list[Any]:
    """What another worker gets when the victim's lease has ended."""
    await world.sql("UPDATE worker SET seen_at = seen_at - $1::interval WHERE id >= 1000", SILENT)
    assert len(await fleet.bury(successor.line, SILENT / 2)) == 1
    await fleet.reap(successor.line)
    assert await world.value("SELECT count(*) FROM claim WHERE worker >= 1000") == 0
    return await successor.claim()


async def nobody_writes(world: World) -> None:
    """Return when the server has noticed that the victim is gone: what it had said last has been done or undone."""
    await world.until(
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1",
        victims.NAME,
    )
