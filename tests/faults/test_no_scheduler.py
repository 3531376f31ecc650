"""An API and a worker, and no scheduler anywhere: whatever is handed in starts all the same."""

import asyncio
from typing import Any

import msgspec

from chaos.site import free_ports
from faults.machine import Machine, machine, until
from faults.story import Story, Target
from foliot.kit.settings import Access, client_file
from world import World

NOTE = {"handler": "note", "payload": {"seconds": 0}}


async def _handed_in(up: Machine, path: str, body: dict[str, Any], key: str) -> str:
    return (await up.insist("POST", path, body, key))["runId"]  # type: ignore[no-any-return]


async def test_runs_start_whether_at_once_by_hand_later_or_again(world: World, dsn: str):
    (port,) = free_ports(1)
    # Not `foliot up`, which would start a scheduler whenever there is none.
    with machine(FOLIOT_DATABASE_URL=dsn, FOLIOT_PORT=str(port)) as up:
        up.home.mkdir(exist_ok=True)
        client_file(up.home).write_bytes(msgspec.json.encode(Access(f"http://127.0.0.1:{port}", world.key)))
        processes = [up.spawn("api"), up.spawn("worker", "app:worker")]
        job = await up.insist("POST", "/v1/jobs", {"name": "by hand", **NOTE}, "job")
        once = await asyncio.gather(
            _handed_in(up, "/v1/runs", NOTE, "now"),
            _handed_in(up, f"/v1/jobs/{job['jobId']}:run", {}, "hand"),
            _handed_in(up, "/v1/runs", {**NOTE, "delay": "PT1S"}, "later"),
        )
        again = await _handed_in(up, "/v1/runs", {"handler": "flaky", "backoff": {"initial": "PT0.5S"}}, "again")
        told = Story(up, Target())
        expected = sorted([*((run, 1) for run in once), (again, 1), (again, 2)])
        await until(lambda: len(told.executions()) >= len(expected), 60, "the start of all of them")
        await until(lambda: _all_completed(world, len(once) + 1), 60, "the end of all of them")
        assert sorted((each.run, each.attempt) for each in told.executions()) == expected
        assert await world.count("scheduler") == 0, "somebody else was at work"
        for process in processes:
            process.terminate()
        assert [await asyncio.to_thread(process.wait, 30) for process in processes] == [0, 0], up.log


async def _all_completed(world: World, runs: int) -> bool:
    return await world.value("SELECT count(*) FROM history WHERE ending = 1") == runs and not await world.count("run")
