"""One call to the API, and what may honestly be concluded from its end."""

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec

from chaos.records import CONFIDENCE, SIDE, Operation, Outcome

PATIENCE: Final = 10.0
"""Seconds that a client waits for an answer."""
PATHS: Final = {
    "createJob": ("POST", "/v1/jobs"),
    "createJobs": ("POST", "/v1/jobs:batch"),
    "changeJob": ("PATCH", "/v1/jobs/{job}"),
    "pauseJob": ("POST", "/v1/jobs/{job}:pause"),
    "resumeJob": ("POST", "/v1/jobs/{job}:resume"),
    "cancelJob": ("POST", "/v1/jobs/{job}:cancel"),
    "deleteJob": ("DELETE", "/v1/jobs/{job}"),
    "backfillJob": ("POST", "/v1/jobs/{job}:backfill"),
    "putCalendar": ("PUT", "/v1/calendars/thirds"),
    "runJob": ("POST", "/v1/jobs/{job}:run"),
    "createRun": ("POST", "/v1/runs"),
    "createRuns": ("POST", "/v1/runs:batch"),
    "retryRun": ("POST", "/v1/runs/{run}:retry"),
    "cancelRun": ("POST", "/v1/runs/{run}:cancel"),
    "replayLetters": ("POST", "/v1/dead-letters:replay"),
    "discardLetters": ("POST", "/v1/dead-letters:discard"),
    "pauseQueue": ("POST", f"/v1/queues/{SIDE}:pause"),
    "resumeQueue": ("POST", f"/v1/queues/{SIDE}:resume"),
    "createKey": ("POST", "/v1/keys"),
    "rotateKey": ("POST", "/v1/keys/{thing}:rotate"),
    "revokeKey": ("DELETE", "/v1/keys/{thing}"),
    "rotateEncryption": ("POST", "/v1/encryption:rotate"),
    "putSecret": ("PUT", f"/v1/secrets/{CONFIDENCE}"),
}
SUBMITS: Final = frozenset({"createRun", "createRuns", "runJob", "submitInside"})
"""Calls whose answer names new runs."""


class Held(NamedTuple):
    """A key in somebody's hands: what it is called in the records, and what opens doors."""

    name: str
    token: str


def judge(status: int) -> Outcome:
    """What an answer's status says: a refusal did nothing; an error on the other side may have come too late."""
    if 200 <= status < 300:
        return Outcome.OK
    if 400 <= status < 500 and status != 408:
        return Outcome.FAIL
    return Outcome.UNKNOWN


class Api:
    """Calls the APIs in turn, and writes down every call as its client saw it."""

    def __init__(self, urls: Sequence[str], keys: Mapping[str, str], log: Path, patience: float = PATIENCE) -> None:
        self._urls = urls
        self._turns = itertools.count()
        self._keys = keys
        self._log = log.open("ab")
        self._numbers = itertools.count(1)
        # A connection of its own for each call: what cannot connect has sent nothing, anything else may have arrived.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True, limit=0), timeout=aiohttp.ClientTimeout(total=patience)
        )
        self._reading = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
        self.acknowledged = 0
        """Runs that were answered with an id; a repeated answer counts once."""
        self.outcomes = dict.fromkeys(Outcome, 0)
        self._known: set[str] = set()

    async def close(self) -> None:
        await self._session.close()
        await self._reading.close()
        self._log.close()

    async def call(
        self,
        kind: str,
        *,
        client: int,
        tenant: str,
        job: str | None = None,
        run: str | None = None,
        body: dict[str, Any] | None = None,
        key: str | None = None,
        thing: str | None = None,
        by: Held | None = None,
        match: int | None = None,
        before: Operation | None = None,
    ) -> Operation:
        """`before`: the last try of the same call. This one goes to the next API, as behind any load balancer."""
        method, path = PATHS[kind]
        operation = Operation(
            number=next(self._numbers),
            client=client,
            tenant=tenant,
            kind=kind,
            invoked=time.time(),
            completed=0.0,
            outcome=Outcome.UNKNOWN,
            job=job,
            run=run,
            body=body,
            key=key,
            thing=thing,
            by=None if by is None else by.name,
            match=match,
            api=(next(self._turns) if before is None else before.api + 1) % len(self._urls),
            repeats=0 if before is None else before.repeats or before.number,
        )
        token = self._keys[tenant] if by is None else by.token
        try:
            await self._send(operation, token, method, path.format(job=job, run=run, thing=thing))
        except asyncio.CancelledError:  # what comes of it is unknown
            operation.abandoned = True
            raise
        finally:
            operation.completed = time.time()
            self.write(operation)
        return operation

    async def _send(self, operation: Operation, token: str, method: str, path: str) -> None:
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": operation.request}
        if operation.key is not None:
            headers["Idempotency-Key"] = operation.key
        if operation.match is not None:
            headers["If-Match"] = f'"{operation.match}"'
        content = None if operation.body is None else msgspec.json.encode(operation.body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            url = self._urls[operation.api] + path
            async with self._session.request(method, url, data=content, headers=headers) as answer:
                operation.status = answer.status
                text = await answer.read()
                # Not before all of it was read: whoever is told to stop in between does not know what was made.
                operation.outcome = judge(answer.status)
                if operation.outcome is Outcome.OK:
                    operation.answer = msgspec.json.decode(text)
        except aiohttp.ClientConnectorError:
            operation.outcome = Outcome.FAIL
        except (aiohttp.ClientError, OSError, TimeoutError, msgspec.DecodeError):
            # Also if it was "201" whose body was cut: whoever cannot read the answer does not know what was made.
            operation.outcome = Outcome.UNKNOWN

    def number(self) -> int:
        """Of an operation that somebody else than this carries out, and hands to `write`."""
        return next(self._numbers)

    def write(self, operation: Operation) -> None:
        self.outcomes[operation.outcome] += 1
        if operation.kind in SUBMITS and operation.outcome is Outcome.OK and operation.answer is not None:
            runs = operation.answer.get("runIds") or [run for run in [operation.answer.get("runId")] if run]
            name = operation.key or f"number {operation.number}"
            if runs and name not in self._known:
                self._known.add(name)
                self.acknowledged += len(runs)
        self._log.write(msgspec.json.encode(operation) + b"\n")
        self._log.flush()

    async def read(self, tenant: str, path: str, **query: Any) -> Any:
        """One page of what a user sees; raises unless it was given. Reads are no operations."""
        headers = {"Authorization": f"Bearer {self._keys[tenant]}"}
        url = self._urls[next(self._turns) % len(self._urls)] + path
        async with self._reading.get(url, params=query, headers=headers) as answer:
            answer.raise_for_status()
            return msgspec.json.decode(await answer.read())
