"""The clients: each follows its plan, asks again under the same key while it does not know, and never too fast."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import aiohttp

from chaos import patience
from chaos.backlog import Backlog
from chaos.cancels import Fickle
from chaos.chores import OFTEN, USUAL, Gatekeeper, Mortician, Odd, Oddities, again
from chaos.client import Api
from chaos.clockwork import OFTEN as BY_THE_CLOCK
from chaos.clockwork import Timekeeper
from chaos.commands import SELDOM, Commander
from chaos.graphs import Weaver
from chaos.lines import Crowd, Lines
from chaos.newest import Newest
from chaos.pauses import Pauser
from chaos.plan import CLIENTS, SLOWEST, Planner, Step, calendar
from chaos.records import Operation, Outcome
from chaos.reuse import Reuser
from foliot.store.fleet import LEASE
from foliot.wire.codec import rfc3339

AGAIN_FOR: Final = 60.0
"""Seconds during which a client asks again for what it must know."""
LARGEST_BACKLOG: Final = 6_000
"""Runs handed in by plan and not yet run: beyond this the clients wait. Chores hand in few, and wait for nobody."""


class Driver:
    def __init__(
        self,
        api: Api,
        seed: int,
        ledger: str,
        *,
        rate: float,
        slowest: float = SLOWEST,
        odd: Odd = USUAL,
        chores: bool = True,
        command: Sequence[str] = (),
        more: Sequence[tuple[Callable[[], Awaitable[None]], float]] = (),
    ) -> None:
        """`rate`: runs a second that all bulk clients together hand in at most; `more`: chores, and how often.

        `command`: what does what its payload says; without it nobody runs commands. Without `chores` there is
        nothing but jobs and runs, at that rate.
        """
        self._api = api
        self._seed = seed
        self._ledger = ledger
        self._target = f"{ledger}/do"
        self._rate = rate
        self._slowest = slowest
        self._odd = odd
        self._has_chores = chores
        self._more = more
        self._command = command
        self._jobs: dict[tuple[int, int], str] = {}
        self._tenants = [tenant for tenant, role in CLIENTS if role == "bulk"]
        self._fickle = [Fickle(self, seed, number, tenant) for number, tenant in enumerate(self._tenants)]
        named = enumerate(self._tenants if command else [])
        self._commanders = [Commander(self, seed, number, tenant, command) for number, tenant in named]
        self._gate = Gatekeeper(self, seed, self._tenants[0], LEASE.total_seconds())
        self._backlog = Backlog()
        self.counts: dict[str, int] = {}
        """What the ledger has seen, by phase."""

    @property
    def backlog(self) -> int:
        """Runs that clients handed in by plan, that are to end well, and that have not yet."""
        return len(self._backlog)

    async def run(self, until: float) -> None:
        """Let all clients work until then, by the machine's clock."""
        for number, (tenant, role) in enumerate(CLIENTS):
            if role == "bulk":
                await self.insist(number, tenant, "putCalendar", None, calendar(time.time()), None)
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch())
            clients = [group.create_task(self._client(number, until)) for number in range(len(CLIENTS))]
            chores = [group.create_task(chore) for chore in self._chores()] if self._has_chores else []
            await asyncio.wait(clients)
            for task in (watch, *chores):
                task.cancel()

    def _chores(self) -> Iterator[Coroutine[Any, Any, None]]:
        for number, tenant in enumerate(self._tenants):
            oddities = Oddities(self, self._seed, number, tenant, slowest=self._slowest, odd=self._odd)
            yield again(oddities.step, OFTEN)
            yield again(Lines(self, self._seed, number, tenant, self._target).step, OFTEN)
            yield again(self._fickle[number].step, OFTEN)
            yield again(Newest(self, self._seed, number, tenant, self._command).step, OFTEN)
            yield again(Weaver(self, self._seed, number, tenant, self._target).step, OFTEN)
            yield again(Mortician(self, self._seed, number, tenant).step, OFTEN)
            yield again(Reuser(self, self._seed, number, tenant).step, OFTEN)
        yield from (again(each.step, SELDOM) for each in self._commanders)
        yield again(Crowd(self, self._seed, self._target).step, OFTEN)
        yield again(Timekeeper(self, self._seed, self._tenants[0], time.time).step, BY_THE_CLOCK)
        holds = LEASE.total_seconds()
        yield again(Pauser(self, self._seed, self._tenants[0], holds, time.time).step, OFTEN)
        yield again(self._gate.step, 0.0)
        yield from (again(step, pause) for step, pause in self._more)

    async def _client(self, number: int, until: float) -> None:
        planner = Planner(self._seed, number, self._target, slowest=self._slowest)
        share = self._rate / sum(role == "bulk" for _, role in CLIENTS)
        for step in planner.steps():
            began = time.time()
            await asyncio.sleep(min(step.pause, max(0.0, until - began)))
            await patience.until(lambda: self.backlog <= LARGEST_BACKLOG, until - time.time(), 0.1)
            if time.time() >= until:
                return
            await self._do(number, planner.tenant, step)
            if planner.role == "bulk" and step.body is not None:
                await asyncio.sleep(max(0.0, len(step.body["runs"]) / share - (time.time() - began)))

    async def _do(self, client: int, tenant: str, step: Step) -> None:
        job = None
        if step.job is not None and step.kind != "createJob":
            job = self._jobs.get((client, step.job))
            if job is None:  # its creation never succeeded: there is nothing to act on
                return
        done = await self.insist(client, tenant, step.kind, job, resolved(step.body), step.key)
        if done.outcome is not Outcome.OK or done.answer is None:
            return
        self._backlog.hand_in(step.expected, time.time())
        if step.kind == "createJob" and step.job is not None:
            self._jobs[client, step.job] = done.answer["jobId"]
        if step.again:
            await self.insist(client, tenant, step.kind, job, done.body, step.key)

    async def read(self, tenant: str, path: str, **query: Any) -> Any:
        return await self._api.read(tenant, path, **query)

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
        """Ask until there is an answer; each time is an operation of its own, all under one key."""
        deadline, done = time.time() + AGAIN_FOR, None
        while True:
            done = await self._api.call(
                kind, client=client, tenant=tenant, job=job, run=run, body=body, key=key, before=done
            )
            refused = done.outcome is Outcome.FAIL and done.status
            if done.outcome is Outcome.OK or refused or time.time() > deadline:
                return done
            await asyncio.sleep(random.uniform(0.2, 0.8))  # noqa: S311 - spreads the load; guards nothing

    async def _watch(self) -> None:
        """Follow what the ledger has seen, so that the backlog stays bounded."""
        async with aiohttp.ClientSession() as session:
            while True:
                async with session.get(f"{self._ledger}/count") as answer:
                    seen = await answer.json()
                self._backlog.end(seen.pop("ended"), time.time())
                self.counts = seen
                await asyncio.sleep(0.25)

    async def wind_down(self) -> None:
        """Cancel whatever would go on for ever, as recorded calls: recurring jobs, and what holds back runs."""
        await self._gate.open()
        lasting: list[Fickle | Commander] = [*self._fickle, *self._commanders]
        for each in lasting:
            await each.finish()
        for number, (tenant, role) in enumerate(CLIENTS):
            if role == "bulk":
                for job in await self._endless(tenant):
                    await self.insist(number, tenant, "cancelJob", job, None, None)

    async def _endless(self, tenant: str) -> list[str]:
        found: list[str] = []
        query = {"limit": "500"}
        while True:
            page = await self._api.read(tenant, "/v1/jobs", **query)
            found += [
                job["jobId"]
                for job in page["items"]
                if job["status"] != "cancelled" and (job["scheduleType"] == "recurring" or job["status"] == "paused")
            ]
            if page["nextCursor"] is None:
                return found
            query["cursor"] = page["nextCursor"]


def resolved(body: dict[str, Any] | None) -> dict[str, Any] | None:
    """The body with {"$in": seconds} replaced by the instant that far from now."""
    if body is None:
        return None
    now = datetime.now(UTC)
    return {name: _instant(value, now) for name, value in body.items()}


def _instant(value: Any, now: datetime) -> Any:
    if isinstance(value, dict) and "$in" in value:
        return rfc3339(now + timedelta(milliseconds=round(value["$in"] * 1000)))
    return value
