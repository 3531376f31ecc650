"""The clients: the same names, with `await` on `AsyncFoliot` and without on `Foliot`."""

import asyncio
import http.client
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from foliot.sdk import protocol
from foliot.sdk.protocol import ApiError, Request, body_of, camel, path, timing

_OVER: Final = frozenset({"completed", "failed", "cancelled", "skipped", "missed"})


class _Record:
    """An answer of the API, with its fields as attributes in Python's spelling."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[camel(name)]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}") from None

    def __repr__(self) -> str:
        shown = {name: self.values[name] for name in ("jobId", "runId", "name", "status") if name in self.values}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class Job(_Record):
    """A job as it stood when it was read."""

    @property
    def id(self) -> str:
        return str(self.values["jobId"])


class Run(_Record):
    """A run as it stood when it was read; `wait` and `refresh` read it again."""

    def __init__(self, values: dict[str, Any], client: "Foliot | None" = None) -> None:
        super().__init__(values)
        self._client = client

    @property
    def id(self) -> str:
        return str(self.values["runId"])

    @property
    def is_over(self) -> bool:
        return self.values.get("status") in _OVER

    def refresh(self) -> Self:
        if self._client is None:
            raise TypeError("this run came from AsyncFoliot: use `await client.get_run(run.id)`")
        self.values = self._client.get_run(self.id).values
        return self

    def wait(self, timeout: float = 300) -> Self:
        """Wait for the run's end, up to `timeout` seconds, then TimeoutError."""
        end, pause = time.monotonic() + timeout, 0.02
        while not self.refresh().is_over:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.id} is still {self.status} after {timeout:g} s")
            time.sleep(pause)
            pause = min(pause * 1.5, 1.0)
        return self


def _submission(
    handler: str | dict[str, Any],
    payload: Any,
    delay: str | float | timedelta | None,
    at: datetime | None,
    key: str | None,
    policy: dict[str, Any],
) -> Request:
    body = body_of({"handler": handler, "payload": payload, **timing(delay=delay, at=at), **policy})
    return Request("POST", path("runs"), body, key)


class Foliot:
    """Talks to Foliot and waits for each answer. Finds a local instance by itself; needs no closing."""

    def __init__(self, url: str | None = None, key: str | None = None, *, timeout: float = 30) -> None:
        self._access = protocol.access_or_fail(url, key)
        self._timeout = timeout

    def request(self, request: Request) -> Any:
        address = self._access.url + request.path
        if not address.startswith(("http://", "https://")):
            raise ApiError(0, f"{self._access.url} is not an http(s) address", "correct FOLIOT_URL")
        call = urllib.request.Request(  # noqa: S310 - the scheme was checked
            address, data=request.body, method=request.method, headers=request.headers(self._access)
        )
        try:
            with urllib.request.urlopen(call, timeout=self._timeout) as response:  # noqa: S310 - as above
                return protocol.unpack(response.status, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return protocol.unpack(error.code, error.read())
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, f"{self._access.url} cannot be reached: {error}", "is `foliot up` running?") from None

    def submit(
        self,
        handler: str | dict[str, Any],
        payload: Any = None,
        *,
        delay: str | float | timedelta | None = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
        **policy: Any,
    ) -> Run:
        """Run a function or call an address once: now, after `delay`, or `at` an instant. On disk when this returns."""
        request = _submission(handler, payload, delay, at, idempotency_key, policy)
        return Run({**self.request(request), "status": "pending"}, self)

    def create_job(
        self, name: str, handler: str | dict[str, Any], *, idempotency_key: str | None = None, **fields: Any
    ) -> Job:
        body = body_of({"name": name, "handler": handler, **fields})
        return Job(self.request(Request("POST", path("jobs"), body, idempotency_key)))

    def put_job(self, key: str, name: str, handler: str | dict[str, Any], **fields: Any) -> Job:
        """Create the job of this key, or make it what is given here."""
        body = body_of({"name": name, "handler": handler, **fields})
        return Job(self.request(Request("PUT", path("jobs", "by-key", key), body)))

    def get_job(self, job: str) -> Job:
        return Job(self.request(Request("GET", path("jobs", job))))

    def list_jobs(self, **query: Any) -> list[Job]:
        return [Job(each) for each in self.request(Request("GET", path("jobs", **query)))["items"]]

    def change_job(self, job: str, **fields: Any) -> Job:
        return Job(self.request(Request("PATCH", path("jobs", job), body_of(fields))))

    def pause_job(self, job: str) -> Job:
        return Job(self.request(Request("POST", path("jobs", job, verb=":pause"))))

    def resume_job(self, job: str) -> Job:
        return Job(self.request(Request("POST", path("jobs", job, verb=":resume"))))

    def cancel_job(self, job: str) -> Job:
        return Job(self.request(Request("DELETE", path("jobs", job))))

    def run_job(
        self, job: str, *, delay: str | float | timedelta | None = None, at: datetime | None = None, **fields: Any
    ) -> Run:
        body = body_of({**timing(delay=delay, at=at), **fields})
        return Run({**self.request(Request("POST", path("jobs", job, verb=":run"), body)), "status": "pending"}, self)

    def get_run(self, run: str) -> Run:
        return Run(self.request(Request("GET", path("runs", run))), self)

    def list_runs(self, **query: Any) -> list[Run]:
        return [Run(each, self) for each in self.request(Request("GET", path("runs", **query)))["items"]]

    def list_attempts(self, run: str) -> list[dict[str, Any]]:
        return list(self.request(Request("GET", path("runs", run, "attempts")))["items"])


class AsyncFoliot:
    """Talks to Foliot without blocking the loop: `async with AsyncFoliot() as client`."""

    def __init__(self, url: str | None = None, key: str | None = None, *, timeout: float = 30) -> None:
        self._access = protocol.access_or_fail(url, key)
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(self, request: Request) -> Any:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        try:
            async with self._session.request(
                request.method,
                self._access.url + request.path,
                data=request.body,
                headers=request.headers(self._access),
            ) as response:
                return protocol.unpack(response.status, await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ApiError(0, f"{self._access.url} cannot be reached: {error}", "is `foliot up` running?") from None

    async def submit(
        self,
        handler: str | dict[str, Any],
        payload: Any = None,
        *,
        delay: str | float | timedelta | None = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
        **policy: Any,
    ) -> Run:
        """Run a function or call an address once: now, after `delay`, or `at` an instant. On disk when this returns."""
        request = _submission(handler, payload, delay, at, idempotency_key, policy)
        return Run({**await self.request(request), "status": "pending"})

    async def create_job(
        self, name: str, handler: str | dict[str, Any], *, idempotency_key: str | None = None, **fields: Any
    ) -> Job:
        body = body_of({"name": name, "handler": handler, **fields})
        return Job(await self.request(Request("POST", path("jobs"), body, idempotency_key)))

    async def put_job(self, key: str, name: str, handler: str | dict[str, Any], **fields: Any) -> Job:
        """Create the job of this key, or make it what is given here."""
        body = body_of({"name": name, "handler": handler, **fields})
        return Job(await self.request(Request("PUT", path("jobs", "by-key", key), body)))

    async def get_job(self, job: str) -> Job:
        return Job(await self.request(Request("GET", path("jobs", job))))

    async def get_run(self, run: str) -> Run:
        return Run(await self.request(Request("GET", path("runs", run))))

    async def wait(self, run: str, timeout: float = 300) -> Run:  # noqa: ASYNC109 - the same word as in Foliot
        """Wait for a run's end, up to `timeout` seconds, then TimeoutError."""
        async with asyncio.timeout(timeout):
            pause = 0.02
            while not (seen := await self.get_run(run)).is_over:
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, 1.0)
            return seen
