"""A load that is under way when the fault comes, three records of what became of it, and what must be true of them."""

import asyncio
import itertools
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import NamedTuple

import aiohttp
from aiohttp import web

from faults.machine import Machine, Refused, until
from foliot.domain.ids import decode

IN_FLIGHT = 1_000
SECOND = timedelta(seconds=1)


class Execution(NamedTuple):
    """One begin of a handler, as the handler itself recorded it."""

    run: str
    fence: int
    attempt: int
    pid: int
    """Of the worker; 0 for requests, which do not tell."""
    at: float
    """By the clock of the machine, which is that of all its processes (`time.monotonic`)."""


class Target:
    """Something to call over HTTP that remembers who called."""

    def __init__(self) -> None:
        self.url = ""
        self.heard: list[Execution] = []

    async def answer(self, request: web.Request) -> web.Response:
        payload = (await request.json())["payload"]
        run, fence, attempt = (request.headers[f"Foliot-{name}"] for name in ("Run", "Fence", "Attempt"))
        self.heard.append(Execution(run, int(fence), int(attempt), 0, time.monotonic()))
        await asyncio.sleep(payload["seconds"] if payload else 0.2)
        return web.Response()

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator["Target"]:
        target = cls()
        application = web.Application()
        application.router.add_route("*", "/", target.answer)
        runner = web.AppRunner(application, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        target.url = "http://{}:{}/".format(*runner.addresses[0][:2])
        try:
            yield target
        finally:
            await runner.cleanup()


class Story:
    """What one machine was asked to do, and what came of it."""

    def __init__(self, machine: Machine, target: Target, started: float = 0.0) -> None:
        """`started`: how many seconds the first start took."""
        self.machine = machine
        self.target = target
        self.started = started
        self.acknowledged: list[str] = []
        self.jobs: list[str] = []

    def executions(self) -> list[Execution]:
        text = self.machine.ledger.read_text() if self.machine.ledger.exists() else ""
        noted = [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]  # the last may be half written
        return [Execution(run, int(fence), int(attempt), int(pid), float(at)) for run, fence, attempt, pid, at in noted]

    async def submit(
        self, count: int, seconds: float = 0.0, hang_up_after: float | None = None, **fields: str
    ) -> list[str]:
        """Hand in runs, of the function unless `fields` say otherwise; insisting: each is acknowledged exactly once.

        With `hang_up_after` the first call is cut after so many seconds: it may have been done or not.
        """
        run = {"handler": "note", "payload": {"seconds": seconds}, **fields}
        body = {"runs": [run] * count}
        key = str(uuid.uuid4())
        if hang_up_after is not None:
            with suppress(TimeoutError, aiohttp.ClientError, Refused):
                async with asyncio.timeout(hang_up_after):
                    await self.machine.call("POST", "/v1/runs:batch", body, key)
        ids: list[str] = (await self.machine.insist("POST", "/v1/runs:batch", body, key))["runIds"]
        self.acknowledged += ids
        return ids

    @asynccontextmanager
    async def traffic(self) -> AsyncIterator[None]:
        """Clients that hand in small batches all the time, so that some calls are under way when the fault comes."""
        stop = asyncio.Event()

        async def client(*, is_patient: bool) -> None:
            for number in itertools.count():
                if stop.is_set():
                    return
                await self.submit(5, hang_up_after=None if is_patient else 0.002 * (number % 10 + 1))

        async with asyncio.TaskGroup() as group:
            for is_patient in (True, True, False, False):
                group.create_task(client(is_patient=is_patient))
            before = len(self.acknowledged)
            await until(lambda: len(self.acknowledged) > before + 50, 10, "traffic")
            yield
            stop.set()

    async def submit_requests(self, count: int) -> None:
        body = {"runs": [{"handler": self.target.url}] * count}
        self.acknowledged += (await self.machine.insist("POST", "/v1/runs:batch", body, str(uuid.uuid4())))["runIds"]

    async def begin(self, seconds: float = 1.5) -> None:
        """Jobs at every second, and twice a thousand runs of so many, half of which are under way when this returns."""
        for handler, payload in (("note", {"seconds": 0.3}), (self.target.url, None)):
            for overlap in ("skip", "allow"):
                body = {"name": overlap, "handler": handler, "payload": payload, "every": 1, "overlap": overlap}
                self.jobs.append((await self.machine.call("POST", "/v1/jobs", body))["jobId"])
        await self.submit_requests(100)
        await asyncio.gather(*(self.submit(250, seconds=seconds) for _ in range(8)))
        await until(lambda: self.begun() >= IN_FLIGHT, 20, "a thousand runs in flight")

    def begun(self) -> int:
        return len({each.run for each in self.executions()} & set(self.acknowledged))

    def begun_again(self) -> list[float]:
        """When those began that were not the first of their run."""
        noted = self.executions()
        firsts = {each.run: each for each in reversed(noted)}
        return [each.at for each in noted if each is not firsts[each.run]]

    async def completed(self) -> set[str]:
        """Every run that the API lists as completed."""
        found: set[str] = set()
        cursor = ""
        while True:
            page = await self.machine.insist("GET", f"/v1/runs?status=completed&limit=500{cursor}")
            found |= {run["runId"] for run in page["items"]}
            if page["nextCursor"] is None:
                return found
            cursor = f"&cursor={page['nextCursor']}"

    async def works_again(self, seconds: float) -> None:
        """New work is taken and done, and schedules fire."""
        (probe,) = await self.submit(1)
        await until(lambda: any(each.run == probe for each in self.executions()), seconds, "a new run")

    async def finish(self, seconds: float) -> None:
        """Wait until all that was acknowledged is completed, then stop the clockwork and let it run out."""
        await until(self._is_done, seconds, "the end of every acknowledged run")
        for job in self.jobs:
            await self.machine.insist("POST", f"/v1/jobs/{job}:pause")
        await until(self._is_quiet, 30, "quiet")

    async def _is_done(self) -> bool:
        (row,) = await self.machine.ask(
            "SELECT count(*) FROM history WHERE state > 3 AND run = ANY ($1)",
            [decode("run", run) for run in self.acknowledged],
        )
        return row[0] >= len(self.acknowledged)

    async def _is_quiet(self) -> bool:
        (row,) = await self.machine.ask(
            "SELECT (SELECT count(*) FROM run WHERE state <> 2) + (SELECT count(*) FROM claim)"
            " + (SELECT count(*) FROM firing WHERE closed_at IS NULL)"
        )
        return row[0] == 0

    async def check(self, *, killed: int | None = None) -> int:
        """All that must be true in the end; `killed` is the only worker whose runs may have been executed again.

        Returns how many were.
        """
        completed = await self.completed()
        assert len(set(self.acknowledged)) == len(self.acknowledged)
        assert set(self.acknowledged) <= completed, "acknowledged, but not completed"
        executions = self.executions() + self.target.heard
        assert completed == {each.run for each in executions}, "completed and executed are not the same"
        await self._check_history(executions)
        await self._check_instants()
        return self._check_repeats(killed)

    async def _check_history(self, executions: list[Execution]) -> None:
        twice = await self.machine.ask("SELECT run FROM history WHERE state > 3 GROUP BY run HAVING count(*) <> 1")
        assert not twice, "runs that ended twice"
        (row,) = await self.machine.ask("SELECT count(*) FROM history WHERE job IS NULL AND state > 3")
        assert row[0] == len(self.acknowledged), "a repeated call was taken for a new one"
        highest: dict[int, int] = defaultdict(int)
        for each in executions:
            run = decode("run", each.run)
            highest[run] = max(highest[run], each.fence)
        rows = await self.machine.ask("SELECT run, fence FROM history WHERE state = 4")
        assert {row["run"]: row["fence"] for row in rows} == highest, "ended by another than the last who began"

    async def _check_instants(self) -> None:
        rows = await self.machine.ask("SELECT job, scheduled_at FROM history WHERE job IS NOT NULL AND state > 3")
        missed = await self.machine.ask("SELECT at, through FROM firing WHERE missed")
        per_job: dict[int, list[datetime]] = defaultdict(list)
        for row in rows:
            per_job[row["job"]].append(row["scheduled_at"])
        assert set(per_job) == {decode("job", job) for job in self.jobs}
        for instants in per_job.values():
            assert not [at for at, count in Counter(instants).items() if count > 1], "an instant fired twice"
            at, last, known = min(instants), max(instants), set(instants)
            while (at := at + SECOND) < last:
                assert at in known or any(row["at"] <= at <= row["through"] for row in missed), f"no outcome for {at}"

    def _check_repeats(self, killed: int | None) -> int:
        by_run: dict[str, list[Execution]] = defaultdict(list)
        for each in self.executions() + self.target.heard:
            by_run[each.run].append(each)
        repeated = {run: each for run, each in by_run.items() if len(each) > 1}
        for each in repeated.values():
            fences = [execution.fence for execution in each]
            assert sorted(set(fences)) == fences, "a repeat must have a higher fence"
            assert killed is not None, "executed again although no worker was lost"
            assert all(execution.pid in {killed, 0} for execution in each[:-1]), "executed again without a reason"
        return len(repeated)


@asynccontextmanager
async def story(machine: Machine) -> AsyncIterator[Story]:
    async with Target.open() as target:
        yield Story(machine, target, await machine.start())


def report(what: str, **seconds: float) -> None:
    """Measured times, for who runs pytest with -s or looks at a failure."""
    print(f"{what}: " + ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items()))  # noqa: T201
