"""Clients: the same plans as under real chaos, on virtual time, straight into the APIs' applications."""

import asyncio
import itertools
import random
from collections.abc import Coroutine, Iterator
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from chaos.cancels import Fickle
from chaos.chores import OFTEN, Gatekeeper, Mortician, Oddities, again
from chaos.client import PATHS, PATIENCE, judge
from chaos.clockwork import Timekeeper
from chaos.graphs import Weaver
from chaos.lines import Crowd, Lines
from chaos.newest import Newest
from chaos.pauses import Pauser
from chaos.plan import CLIENTS, Planner, Step, calendar
from chaos.records import Operation, Outcome
from chaos.reuse import Reuser
from chaos.simulation.product import LEASE, ApiNode
from chaos.simulation.world import World
from foliot.wire.codec import rfc3339

AGAIN_FOR: Final = 20.0
LARGEST_BATCH: Final = 12
SLOWEST: Final = 5.0
BY_THE_WALL: Final = "*/10 0-59 0-23 * * *"
"""Every ten seconds of the wall clock: unlike with `*`, what it skips or repeats is up to the rules."""
CHANGING: Final = ("Europe/Berlin", "Australia/Sydney")
BACKFILLS: Final = 0.1
"""The share of back-fills in what clients do, as soon as they have something to make up for: seeds are short."""
TARGET: Final = "http://ledger.test/do"
FEW: Final = 3
"""Runs of a batch that is cancelled."""
CHOSEN: Final = (0, 2, 4)
"""Of the clients under real chaos: one that hands in runs, and one of each tenant that looks after jobs."""


class SmallPlanner(Planner):
    """As under real chaos, in smaller bites."""

    caged = 0.0  # there are no processes here

    def _act(self, *, http: float) -> tuple[dict[str, Any], int]:
        run, well = super()._act(http=http)
        if self._chance.random() < 0.3:
            run["payload"]["slow"] = round(self._chance.uniform(0.2, self._slowest), 2)
        return run, well

    def _mixed(self) -> Step:
        recurring = sorted(job for job, timing in self._jobs.items() if timing in {"cron", "every"})
        if recurring and self._chance.random() < BACKFILLS:
            return self._of_job("backfillJob", self._chance.uniform(0.1, 1.0), self._chance.choice(recurring))
        return super()._mixed()

    def _timing(self, timing: str) -> dict[str, Any]:
        found = super()._timing(timing)
        if timing == "once":
            return {"scheduleAt": {"$in": found["scheduleAt"]["$in"] / 4}}
        if timing == "cron" and self._chance.random() < 0.4:
            rules = {"gap": self._chance.choice(("end", "skip")), "fold": self._chance.choice(("once", "twice"))}
            return {"cronExpression": BY_THE_WALL, "timezone": self._chance.choice(CHANGING), "dst": rules}
        return found

    def _batch(self) -> Step:
        step = super()._batch()
        runs = (step.body or {})["runs"][: self._chance.randint(1, LARGEST_BATCH)]
        return msgspec.structs.replace(step, body={"runs": runs}, pause=self._chance.uniform(0.1, 1.0))


class Clients:
    def __init__(self, world: World) -> None:
        self._world = world
        self._numbers = itertools.count(1)
        self._jobs: dict[tuple[int, int], str] = {}
        self._chance = random.Random(f"{world.seed}/clients")  # noqa: S311 - guards nothing
        self._fickle: Fickle | None = None
        self._gate = Gatekeeper(self, world.seed, "acme", LEASE.total_seconds())

    async def prepare(self) -> None:
        for number, tenant in _one_each():
            body = calendar(self._world.ground.seconds())
            await self.insist(number, tenant, "putCalendar", None, body)

    async def run(self, seconds: float) -> None:
        until = self._world.loop.time() + seconds
        async with asyncio.TaskGroup() as group:
            chores = [group.create_task(each) for each in self._chores()]
            await asyncio.wait([group.create_task(self._client(number, until)) for number in CHOSEN])
            for chore in chores:
                chore.cancel()

    def _chores(self) -> Iterator[Coroutine[Any, Any, None]]:
        if self._world.has_lines:
            (number, tenant), (other, stranger) = _one_each()
            self._fickle = Fickle(self, self._world.seed, other, stranger, FEW)
            yield again(Lines(self, self._world.seed, number, tenant, TARGET).step, OFTEN)
            yield again(Newest(self, self._world.seed, other, stranger).step, OFTEN)
            yield again(Crowd(self, self._world.seed, TARGET).step, OFTEN)
            yield again(self._fickle.step, OFTEN)
        if self._world.has_times:
            tenant = CLIENTS[CHOSEN[0]][0]
            yield again(Timekeeper(self, self._world.seed, tenant, self._world.ground.seconds).step, OFTEN / 3)
            pauser = Pauser(
                self, self._world.seed, tenant, LEASE.total_seconds(), self._world.ground.seconds, clog=True
            )
            yield again(pauser.step, OFTEN)
        if not self._world.has_chores:
            return
        for number, tenant in _one_each():
            oddities = Oddities(self, self._world.seed, number, tenant, slowest=1.0)
            yield again(oddities.step, OFTEN)
            yield again(Mortician(self, self._world.seed, number, tenant).step, OFTEN)
        number, tenant = next(_one_each())
        yield again(Weaver(self, self._world.seed, number, tenant, TARGET).step, OFTEN)
        yield again(Reuser(self, self._world.seed, number, tenant).step, OFTEN)
        yield again(self._gate.step, 0.0)

    async def _client(self, number: int, until: float) -> None:
        planner = SmallPlanner(self._world.seed, number, TARGET, slowest=SLOWEST)
        for step in planner.steps():
            await asyncio.sleep(step.pause)
            if self._world.loop.time() >= until:
                return
            await self._do(number, planner.tenant, step)

    async def _do(self, client: int, tenant: str, step: Step) -> None:
        job = None
        if step.job is not None and step.kind != "createJob":
            job = self._jobs.get((client, step.job))
            if job is None:
                return
        body = _resolved(step.body, self._world.ground.now())
        done = await self.insist(client, tenant, step.kind, job, body, step.key)
        if done.outcome is not Outcome.OK or done.answer is None:
            return
        if step.kind == "createJob" and step.job is not None:
            self._jobs[client, step.job] = done.answer["jobId"]
        if step.again:
            await self._call(client, tenant, step.kind, job, body, step.key)

    async def insist(
        self,
        client: int,
        tenant: str,
        kind: str,
        job: str | None,
        body: dict[str, Any] | None = None,
        key: str | None = None,
        run: str | None = None,
    ) -> Operation:
        deadline = self._world.loop.time() + AGAIN_FOR
        while True:
            done = await self._call(client, tenant, kind, job, body, key, run)
            refused = done.outcome is Outcome.FAIL and done.status
            if done.outcome is Outcome.OK or refused or self._world.loop.time() > deadline:
                return done
            await asyncio.sleep(self._chance.uniform(0.2, 0.8))

    async def _call(
        self,
        client: int,
        tenant: str,
        kind: str,
        job: str | None,
        body: dict[str, Any] | None,
        key: str | None,
        run: str | None = None,
    ) -> Operation:
        method, path = PATHS[kind]
        operation = Operation(
            number=next(self._numbers),
            client=client,
            tenant=tenant,
            kind=kind,
            invoked=self._world.ground.seconds(),
            completed=0.0,
            outcome=Outcome.UNKNOWN,
            job=job,
            run=run,
            body=body,
            key=key,
        )
        node = self._chance.choice(self._world.front)
        headers = {"content-type": "application/json"} if body is not None else {}
        if key is not None:
            headers["idempotency-key"] = key
        content = b"" if body is None else msgspec.json.encode(body)
        try:
            status, text = await self._send(node, tenant, method, path.format(job=job, run=run), "", headers, content)
            operation.status, operation.outcome = status, judge(status)
            if operation.outcome is Outcome.OK:
                operation.answer = msgspec.json.decode(text)
        except ConnectionRefusedError:
            operation.outcome = Outcome.FAIL
        except (ConnectionError, TimeoutError):
            operation.outcome = Outcome.UNKNOWN
        finally:  # also when we are told to stop in the middle: then it is unknown
            operation.completed = self._world.ground.seconds()
            self._world.note(f"client-{client} {kind} {job or run or ''} {operation.outcome} {operation.status}")
            self._world.operations.append(operation)
        return operation

    async def _send(
        self, node: ApiNode, tenant: str, method: str, path: str, query: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, bytes]:
        if node.app is None:
            raise ConnectionRefusedError
        headers = {"authorization": f"Bearer {self._world.ground.keys[tenant]}", **headers}
        request = node.take(_serve(node, method, path, query, headers, content))
        done, _ = await asyncio.wait([request], timeout=PATIENCE)
        if not done:
            raise TimeoutError
        if request.cancelled():
            raise ConnectionResetError
        return request.result()  # type: ignore[no-any-return]

    async def read(self, tenant: str, path: str, **query: Any) -> Any:
        """One page of what a user sees, from any API that answers."""
        for node in itertools.islice(itertools.cycle(self._world.front), 20):
            try:
                status, text = await self._send(node, tenant, "GET", path, urlencode(query), {}, b"")
            except (ConnectionError, TimeoutError):
                status, text = 0, b""
            if status == 200:
                return msgspec.json.decode(text)
            await asyncio.sleep(0.5)
        raise TimeoutError(f"{path} was not answered: {status} {text!r}")

    async def pages(self, tenant: str, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": 500}
        while True:
            page = await self.read(tenant, path, **query)
            items += page["items"]
            if page["nextCursor"] is None:
                return items
            query["cursor"] = page["nextCursor"]

    async def wind_down(self) -> None:
        """Cancel whatever would go on for ever, as recorded calls."""
        if self._world.has_chores:
            await self._gate.open()
        if self._fickle is not None:
            await self._fickle.finish()
        for number, tenant in _one_each():
            for job in await self.pages(tenant, "/v1/jobs"):
                endless = job["scheduleType"] == "recurring" or job["status"] == "paused"
                if endless and job["status"] != "cancelled":
                    await self.insist(number, tenant, "cancelJob", job["jobId"])


def _one_each() -> Iterator[tuple[int, str]]:
    return ((number, tenant) for number, (tenant, role) in enumerate(CLIENTS) if role == "bulk")


async def _serve(
    node: ApiNode, method: str, path: str, query: str, headers: dict[str, str], content: bytes
) -> tuple[int, bytes]:
    """One request as a web server would hand it on, once the process is awake to take it."""
    await node.awake()
    status, parts, asked = 0, [], False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await node.app(scope, receive, send)
    await node.awake()
    return status, b"".join(parts)


def _resolved(body: dict[str, Any] | None, now: datetime) -> dict[str, Any] | None:
    if body is None:
        return None
    return {
        name: rfc3339(now + timedelta(milliseconds=round(value["$in"] * 1000)))
        if isinstance(value, dict) and "$in" in value
        else value
        for name, value in body.items()
    }
