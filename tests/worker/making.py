"""What the tests of the worker are made of: runs as if claimed, a carrier in memory, and waiting with a deadline."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from foliot.domain.spec import FunctionHandler, HttpHandler, Spec
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.fleet import Load, Standing
from foliot.store.reports import Report
from foliot.store.specs import StoredSpec
from foliot.worker.executor import Assignment, Executor
from world import PATIENCE

NOW = datetime(2026, 11, 15, 20, 16, 25, tzinfo=UTC)
_NUMBERS = itertools.count(1)


def claimed(**fields: Any) -> Claimed:
    """A run that a worker holds."""
    values: dict[str, Any] = {
        "fence": 7,
        "position": 1,
        "id": next(_NUMBERS) << 22,
        "rank": 1,
        "tenant": 1,
        "spec": 1,
        "job": None,
        "attempt": 0,
        "deaths": 0,
        "scheduled_at": NOW,
        "target": None,
        "payload": b'{"n":1}',
    }
    return Claimed(**{**values, **fields})


def function_spec(name: str = "noop", **fields: Any) -> Spec:
    return Spec(handler=FunctionHandler(name), **fields)


def assignment(spec: Spec | None = None, **fields: Any) -> Assignment:
    return Assignment(claimed(**fields), spec or function_spec(), "report", NOW)


def call(url: str | None, **fields: Any) -> Spec:
    return Spec(handler=HttpHandler(url=url, **fields))


async def eventually(holds: Callable[[], Any]) -> None:
    """Let the loop turn until `holds`; fail if it takes too long."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - what is waited for knows no event
            await asyncio.sleep(0.001)


async def event(happened: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE):
        await happened.wait()


class MemoryCarrier:
    """Stands for the database: hands out what it was given, takes outcomes, and can be out of reach."""

    def __init__(self, runs: Sequence[Claimed] = (), spec: Spec | None = None) -> None:
        self.runs = list(runs)
        self.spec = spec or function_spec()
        self.settled: list[Settlement] = []
        self.begun: list[int] = []
        self.forgotten: list[int] = []
        self.asked: list[int] = []
        self.numbers: list[int] = []
        self.patience: list[timedelta] = []
        self.stray: list[Claimed] = []
        self.lost: set[int] = set()
        self.beats = 0
        self.reports: list[Report] = []
        self.standing = Standing(draining=False, paused=frozenset())
        self.is_dead = False
        self.broken: BaseException | None = None
        self.refuses: Callable[[Settlement], Exception | None] = lambda _: None
        self.reply_is_lost = False
        self.calls = 0
        self.fence = 0
        self.promoted = 0
        self.voucher = None

    def _reach(self) -> None:
        self.calls += 1
        if self.broken is not None:
            raise self.broken

    async def claim(
        self,
        number: int,
        lanes: Sequence[int],
        marks: Sequence[int],
        most: int,
        portions: Sequence[int],
        patience: timedelta = timedelta(),
    ) -> list[Claimed]:
        self._reach()
        self.patience.append(patience)
        self.asked.append(most)
        self.numbers.append(number)
        taken, self.runs = self.runs[:most], self.runs[most:]
        return taken

    async def strays(self, known: Sequence[int]) -> list[Claimed]:
        self._reach()
        found, self.stray = [run for run in self.stray if run.fence not in known], []
        return found

    async def specs(self, ids: Sequence[int]) -> dict[int, StoredSpec]:
        self._reach()
        return {number: StoredSpec(1, self.spec) for number in ids}

    async def job_names(self, jobs: Sequence[int]) -> dict[int, str]:
        return {job: f"job {job}" for job in jobs}

    async def settle(self, batch: Sequence[Settlement]) -> list[Settlement]:
        self._reach()
        for error in filter(None, map(self.refuses, batch)):
            raise error
        known = {each.run.id for each in self.settled}
        self.settled += [each for each in batch if each.run.id not in known and each.run.id not in self.lost]
        if self.reply_is_lost:
            self.reply_is_lost = False
            raise ConnectionResetError("the reply was lost")
        return [each for each in batch if each.run.id in self.lost]

    async def forget(self, fences: Sequence[int]) -> None:
        self._reach()
        self.forgotten += fences

    async def publish(self, highest: dict[int, int]) -> None:
        self._reach()

    async def promote(self) -> int:
        self._reach()
        self.promoted += 1
        return 0

    async def note_started(self, begun: Sequence[tuple[Claimed, datetime]]) -> set[tuple[int, int]]:
        self._reach()
        self.begun += [run.id for run, _ in begun]
        return {(run.id, run.fence) for run, _ in begun if run.id not in self.lost}

    async def report(self, reports: Sequence[Report]) -> set[tuple[int, int]]:
        self._reach()
        self.reports += reports
        return {(each.run, each.fence) for each in reports if each.run not in self.lost}

    async def last_checkpoint(self, run: Claimed) -> bytes | None:
        self._reach()
        return next((each.state for each in reversed(self.reports) if each.run == run.id and each.state), None)

    async def register(
        self, queues: Sequence[str], groups: Sequence[str], labels: Sequence[str] = ()
    ) -> dict[int, str]:
        self._reach()
        return {1: "default"}

    async def beat(self, load: Load) -> Standing | None:
        self._reach()
        self.beats += 1
        return None if self.is_dead else self.standing

    async def listen(self, wake: Callable[[], None], news: Callable[[], None]) -> None:
        self._reach()

    def hurry(self) -> None:
        """Its claims never wait."""

    async def leave(self) -> None:
        self._reach()

    async def close(self) -> None:
        pass


class Gate:
    """An executor whose attempts end when the test says so."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.most = 0
        self.going = 0
        self.opened = asyncio.Event()

    @property
    def executor(self) -> Executor:
        async def execute(assignment: Assignment) -> None:
            self.begun.append(assignment.run.id)
            self.going += 1
            self.most = max(self.most, self.going)
            try:
                await self.opened.wait()
            finally:
                self.going -= 1

        return execute
