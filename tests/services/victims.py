"""Processes that kill themselves at one statement, as `kill -9` does: all that is left of them is in the database."""

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from brittle import NAMES, BrittleDatabase, BrittleLine, Scissors
from foliot.domain.spec import FunctionHandler, Spec
from foliot.services.submit import Key, Submitter
from foliot.store.database import Connection, Database, Line
from foliot.store.specs import SpecBook
from foliot.store.submission import NewRun
from foliot.worker.carrier import SqlCarrier
from foliot.worker.executor import Assignment
from foliot.worker.process import WorkerOptions, WorkerProcess

When = Literal["before", "during", "after"]
NAME = "victim"
"""By which the server knows their connections."""
ON_ITS_WAY = 0.004
"""Seconds within which something ends them that was said: it may have arrived, or been done, or not."""


class Guillotine(Scissors):
    """Ends the process around a statement: unsaid, said with nobody to hear the answer, or done and answered."""

    def __init__(self, statement: str, when: When) -> None:
        super().__init__()
        self._at = statement
        self._when = when
        self.noted = asyncio.Event()
        """Set when it is on record that the handler has begun."""

    async def around(self, query: str, connection: Connection, say: Callable[[], Awaitable[Any]]) -> Any:
        name = NAMES.get(query, query)
        if name == self._at and self._when == "before":
            _die()
        if name == self._at and self._when == "during":
            asyncio.get_running_loop().call_later(random.uniform(0, ON_ITS_WAY), _die)
        answer = await say()
        if name == self._at and (answer or name != "claim"):  # one that found nothing is no claim
            _die()
        if name == "note_started":
            self.noted.set()
        return answer


class VictimDatabase(BrittleDatabase):
    def line(self, *, hot: bool = True, **settings: str) -> Line:
        return super().line(hot=hot, application_name=NAME, **settings)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def submit(dsn: str, tenant: int, key: str | None, statement: str, when: When) -> None:
    """An API that takes one run, and dies."""
    asyncio.run(_submit(dsn, tenant, key, Guillotine(statement, when)))


async def _submit(dsn: str, tenant: int, key: str | None, guillotine: Guillotine) -> None:
    database = VictimDatabase(await Database.open(dsn, size=2, application_name=NAME), guillotine)
    submitter = Submitter(database, lambda _: None)
    serving = asyncio.ensure_future(submitter.run())
    ref = await SpecBook(database).intern(tenant, Spec(handler=FunctionHandler("noop")))
    keyed = None if key is None else Key(key, tenant, b"same", lambda ids: msgspec.json.encode(list(ids)))
    await submitter.submit([NewRun(ref, b"{}")], keyed)
    serving.cancel()


def work(dsn: str, number: int, ledger: str, statement: str, when: When) -> None:
    """A worker that takes what there is, notes each beginning of a handler in its ledger, and dies."""
    asyncio.run(_work(dsn, number, Path(ledger), Guillotine(statement, when)))


async def _work(dsn: str, number: int, ledger: Path, guillotine: Guillotine) -> None:
    async def execute(assignment: Assignment) -> None:
        with ledger.open("a") as file:
            file.write(f"{assignment.run.id} {assignment.run.fence}\n")
        await guillotine.noted.wait()

    carrier = SqlCarrier(partial(BrittleLine, dsn, guillotine, application_name=NAME), number, NAME)
    await WorkerProcess(carrier, lambda _: execute, WorkerOptions(groups=("fn:noop",))).run(asyncio.Event())
