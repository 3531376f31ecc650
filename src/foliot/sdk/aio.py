"""The client for the event loop: the same names as `Foliot`, with `await`."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import aiohttp
from yarl import URL

from foliot.sdk import calls, protocol, transaction
from foliot.sdk.calls import Delay, Handler, Moment
from foliot.sdk.protocol import Request
from foliot.sdk.records import AsyncOperation, AsyncRun, Calendar, Fires, Items, Job, Record


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
                URL(self._access.url + request.path, encoded=True),
                data=request.body,
                headers=request.headers(self._access),
            ) as response:
                return protocol.unpack(response.status, await response.read())
        except (aiohttp.ClientError, OSError) as error:
            raise protocol.unreachable(self._access, error) from None

    async def submit(
        self,
        handler: Handler,
        payload: Any = None,
        *,
        delay: Delay = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
        connection: Any = None,
        **policy: Any,
    ) -> AsyncRun:
        """Run a function or call an address once: now, after `delay`, or `at` an instant. On disk when this returns.

        With a `connection` to Foliot's database it is part of the transaction there: on disk when that commits.
        """
        request = calls.submit(handler, payload, delay, at, idempotency_key, policy)
        if connection is None:
            return await self._submitted(request)
        run = await transaction.submit_async(self._access, connection, request)
        return AsyncRun({"runId": run, "status": "pending"}, self._read, self._cancel)

    async def create_job(
        self, name: str, handler: Handler, *, idempotency_key: str | None = None, **fields: Any
    ) -> Job:
        return Job(await self.request(calls.create_job(name, handler, idempotency_key, fields)))

    async def create_jobs(self, jobs: Iterable[Mapping[str, Any]], *, idempotency_key: str | None = None) -> list[str]:
        """Create up to 10,000 jobs, all or none, each from the fields that `create_job` takes; their ids, in order."""
        return list((await self.request(calls.create_jobs(jobs, idempotency_key)))["jobIds"])

    async def put_job(self, key: str, name: str, handler: Handler, **fields: Any) -> Job:
        """Create the job of this key, or make it what is given here."""
        return Job(await self.request(calls.put_job(key, name, handler, fields)))

    async def get_job(self, job: str) -> Job:
        return Job(await self.request(calls.get("jobs", job)))

    async def list_jobs(self, **query: Any) -> Items[Job]:
        page = await self.request(calls.get("jobs", **query))
        return Items(map(Job, page["items"]), page["nextCursor"])

    async def change_job(self, job: str, *, if_version: int | None = None, **fields: Any) -> Job:
        """Change these fields; None takes one away. With `if_version`, only if that is the job's version still."""
        return Job(await self.request(calls.change_job(job, fields, if_version)))

    async def pause_job(self, job: str) -> Job:
        return Job(await self.request(calls.operate(job, "pause")))

    async def resume_job(self, job: str) -> Job:
        return Job(await self.request(calls.operate(job, "resume")))

    async def cancel_job(self, job: str) -> Job:
        return Job(await self.request(calls.operate(job, "cancel")))

    async def delete_job(self, job: str, *, purge: bool = False, if_version: int | None = None) -> Job:
        """Cancel a job; with `purge`, also erase it with its history, once nothing of it goes on any more."""
        return Job(await self.request(calls.delete_job(job, if_version, purge=purge)))

    async def run_job(
        self,
        job: str,
        *,
        delay: Delay = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> AsyncRun:
        """Run a job besides its schedule, with `payload` and `priority` of its own if given."""
        return await self._submitted(calls.run_job(job, delay, at, idempotency_key, fields))

    async def list_executions(self, job: str, **query: Any) -> Items[dict[str, Any]]:
        """The attempts of a job's runs, newest first."""
        page = await self.request(calls.get("jobs", job, "executions", **query))
        return Items(page["items"], page["nextCursor"])

    async def get_run(self, run: str) -> AsyncRun:
        return AsyncRun(await self._read(run), self._read, self._cancel)

    async def wait(self, run: str, timeout: float = 300) -> AsyncRun:  # noqa: ASYNC109 - the same word as in Foliot
        """Wait for a run's end, up to `timeout` seconds, then TimeoutError."""
        return await (await self.get_run(run)).wait(timeout)

    async def preview(self, job: str | None = None, **timing: Any) -> Fires:
        """The next fires of a recurrence: `cron_expression`, `timezone`, `every`, `rrule`, `when`, `count`, …

        With a `job`, what changing these fields of it would add, remove and leave; nothing is changed.
        """
        answer = await self.request(calls.preview({"job": job, **timing}))
        return Fires(answer["items"], answer["zoneData"])

    async def list_runs(self, **query: Any) -> Items[AsyncRun]:
        page = await self.request(calls.get("runs", **query))
        return Items((AsyncRun(each, self._read, self._cancel) for each in page["items"]), page["nextCursor"])

    async def signing_secret(self) -> str:
        """What calls of HTTP handlers are signed with: `whsec_…`."""
        return str((await self.request(calls.get("signing-secret")))["secret"])

    async def get_graph(self, run: str) -> Record:
        """The graph that a run is part of: `nodes` with their states, `edges`, and how it stands as a whole."""
        return Record(await self.request(calls.get("runs", run, "graph")))

    async def cancel_graph(self, run: str) -> Record:
        """Cancel the graph that a run is part of: what waits ends, what runs is asked to stop."""
        return Record(await self.request(calls.cancel_graph(run)))

    async def list_attempts(self, run: str, **query: Any) -> Items[dict[str, Any]]:
        """The attempts of a run, newest first."""
        page = await self.request(calls.get("runs", run, "attempts", **query))
        return Items(page["items"], page["nextCursor"])

    async def list_occurrences(self, job: str, **query: Any) -> Items[dict[str, Any]]:
        """Every fire time of a job and what became of it, newest first: `since`, `until`, `status`, `limit`."""
        page = await self.request(calls.get("jobs", job, "occurrences", **calls.span(query)))
        return Items(page["items"], page["nextCursor"])

    async def list_gaps(self, **query: Any) -> Items[dict[str, Any]]:
        """Fire times that jobs went without, newest first: `since`, `until`, `limit`."""
        page = await self.request(calls.get("gaps", **calls.span(query)))
        return Items(page["items"], page["nextCursor"])

    async def backfill(
        self,
        job: str,
        start: Moment,
        until: Moment,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> AsyncOperation:
        """Run a job's instants from `start` to `until`: `concurrency`, `order`, `reprocess`, `name`, `dry_run`."""
        request = calls.backfill(job, start, until, idempotency_key, fields)
        return AsyncOperation(await self.request(request), self._read_operation)

    async def operation(self, operation: str) -> AsyncOperation:
        return AsyncOperation(await self._read_operation(operation), self._read_operation)

    async def operations(self, **query: Any) -> Items[AsyncOperation]:
        page = await self.request(calls.get("operations", **query))
        return Items((AsyncOperation(each, self._read_operation) for each in page["items"]), page["nextCursor"])

    async def cancel_operation(self, operation: str) -> AsyncOperation:
        """Hand out nothing more and end what waits; what runs goes on."""
        return AsyncOperation(await self.request(calls.cancel_operation(operation)), self._read_operation)

    async def _read_operation(self, operation: str) -> dict[str, Any]:
        return dict(await self.request(calls.get("operations", operation)))

    async def cancel_run(self, run: str) -> AsyncRun:
        """End a run that waits, or ask for the end of one that runs: it is over by `stops_by`."""
        return AsyncRun(await self._cancel(run), self._read, self._cancel)

    async def retry_run(self, run: str) -> AsyncRun:
        """Let a run that has used its attempts go on."""
        return AsyncRun(await self.request(calls.retry_run(run)), self._read, self._cancel)

    async def dead_letters(self, **query: Any) -> Items[dict[str, Any]]:
        """Runs that have used their attempts, newest first: `job`, `error_class`, `text`, `since`, `until`, …"""
        page = await self.request(calls.get("dead-letters", **calls.span(query)))
        return Items(page["items"], page["nextCursor"])

    async def dead_letter(self, run: str) -> dict[str, Any]:
        """A dead letter with its payload, its error and its attempts (`executions`)."""
        return dict(await self.request(calls.get("dead-letters", run)))

    async def replay(self, runs: Iterable[str], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Let up to 1,000 dead letters go on, now: `runIds` were, `refused` were not, each with the `reason`."""
        return dict(await self.request(calls.decide("replay", runs, idempotency_key)))

    async def discard(self, runs: Iterable[str], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Give up to 1,000 dead letters up, now; the answer is as that of `replay`."""
        return dict(await self.request(calls.decide("discard", runs, idempotency_key)))

    async def replay_where(
        self,
        *,
        per_second: float | None = None,
        concurrency: int | None = None,
        name: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        **where: Any,
    ) -> AsyncOperation:
        """Let all dead letters go on for which `where` holds (as in `dead_letters`; all without), at a pace."""
        options = {"per_second": per_second, "concurrency": concurrency, "name": name, "dry_run": dry_run}
        return await self._swept(calls.sweep("replay", where, options, idempotency_key))

    async def discard_where(
        self, *, name: str | None = None, dry_run: bool = False, idempotency_key: str | None = None, **where: Any
    ) -> AsyncOperation:
        """Give all dead letters up for which `where` holds (as in `dead_letters`; all without)."""
        return await self._swept(calls.sweep("discard", where, {"name": name, "dry_run": dry_run}, idempotency_key))

    async def _swept(self, request: Request) -> AsyncOperation:
        return AsyncOperation((await self.request(request))["operation"], self._read_operation)

    async def list_calendars(self, **query: Any) -> Items[Calendar]:
        page = await self.request(calls.get("calendars", **query))
        return Items(map(Calendar, page["items"]), page["nextCursor"])

    async def get_calendar(self, name: str) -> Calendar:
        return Calendar(await self.request(calls.get("calendars", name)))

    async def put_calendar(self, name: str, **fields: Any) -> Calendar:
        """Create a calendar or replace it: `timezone`, `business_days`, `holidays`, `blackouts`."""
        return Calendar(await self.request(calls.put_calendar(name, fields)))

    async def import_calendar(
        self, name: str, ics: str, *, mode: str | None = None, timezone: str | None = None
    ) -> Calendar:
        """Take over the events of an iCalendar file; `unread` of the answer says which lines could not be read."""
        return Calendar.imported(await self.request(calls.import_calendar(name, ics, mode, timezone)))

    async def preview_calendar(
        self, name: str, *, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> list[dict[str, Any]]:
        """The times at which a calendar allows no work: from now on, or within bounds."""
        return list((await self.request(calls.preview_calendar(name, since, until)))["items"])

    async def delete_calendar(self, name: str) -> Calendar:
        """Delete a calendar that no job follows."""
        return Calendar(await self.request(calls.delete_calendar(name)))

    async def workers(self, **query: Any) -> Items[Record]:
        """Workers, newest first: what they offer and have in hand; `state` live, draining or dead."""
        page = await self.request(calls.get("workers", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    async def drain_worker(self, worker: str) -> Record:
        """Have a worker claim nothing more, finish what it runs, and leave."""
        return Record(await self.request(calls.drain_worker(worker)))

    async def queues(self, **query: Any) -> Items[Record]:
        """Queues by name: what waits, how long, who serves it, what is paused."""
        page = await self.request(calls.get("queues", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    async def audit(self, **query: Any) -> Items[Record]:
        """Changes and denied attempts, newest first; `subject`, `action`, `since` and others narrow it down."""
        page = await self.request(calls.get("audit", **calls.span(query)))
        return Items(map(Record, page["items"]), page["nextCursor"])

    async def pause_queue(self, queue: str) -> Record:
        """Have nothing of a queue start until it is resumed; `holds_by` of the answer says from when on."""
        return Record(await self.request(calls.hold_queue(queue, "pause")))

    async def resume_queue(self, queue: str) -> Record:
        return Record(await self.request(calls.hold_queue(queue, "resume")))

    async def tenants(self, **query: Any) -> Items[Record]:
        """Tenants by name: all of them for an operator's key, its own for any other."""
        page = await self.request(calls.get("tenants", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    async def create_tenant(self, name: str, **first_key: Any) -> Record:
        """Create a tenant; `key` of the answer is its first key (`role`, `serves`), in plain text this once."""
        return Record(await self.request(calls.create_tenant(name, first_key)))

    async def get_tenant(self, tenant: str) -> Record:
        """The tenant of this client's key: its `weight`, its `limits`, and how many runs wait for them."""
        return Record(await self.request(calls.get("tenants", tenant)))

    async def limit_tenant(self, tenant: str, *, concurrency: int | None) -> Record:
        """Let so many runs of the tenant go at once, over all its jobs; None takes the limit away."""
        return Record(await self.request(calls.limit_tenant(tenant, concurrency)))

    async def keys(self, **query: Any) -> Items[Record]:
        """Keys of one's own tenant, newest first: `name`, `status`; an operator may name another `tenant`."""
        page = await self.request(calls.get("keys", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    async def get_key(self, key: str) -> Record:
        """What a key (`key_…`) may do, until when, and when it was last used."""
        return Record(await self.request(calls.get("keys", key)))

    async def create_key(self, name: str, **fields: Any) -> Record:
        """Create a key: `role`, `scopes`, `serves`, `expires_in`; the answer has it as `key`, this once."""
        return Record(await self.request(calls.create_key(name, fields)))

    async def rotate_key(self, key: str, **fields: Any) -> Record:
        """Create a `key` that may do the same; the `former` one ends after `overlap`, a day by default."""
        return Record(await self.request(calls.rotate_key(key, fields)))

    async def revoke_key(self, key: str) -> Record:
        """Within 5 seconds it opens nothing any more."""
        return Record(await self.request(calls.revoke_key(key)))

    async def secrets(self, **query: Any) -> Items[Record]:
        """Secrets by name: `version` and `updated_at`, never what they are."""
        page = await self.request(calls.get("secrets", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    async def set_secret(self, name: str, value: str) -> Record:
        """Keep a secret, or another value of it, for runs that refer to it as `{"$secret": name}`."""
        return Record(await self.request(calls.set_secret(name, value)))

    async def delete_secret(self, name: str) -> Record:
        """Runs that refer to it fail from now on."""
        return Record(await self.request(calls.delete_secret(name)))

    async def get_encryption(self, tenant: str | None = None) -> Record:
        """Whether payloads are encrypted (`enabled`), and with which `key_version`; an operator may name a tenant."""
        return Record(await self.request(calls.get("encryption", tenant=tenant)))

    async def switch_encryption(self, *, enabled: bool, tenant: str | None = None) -> Record:
        """Encrypt payloads, results and errors from now on, or no more; `operation_id` does so with what is stored."""
        return Record(await self.request(calls.switch_encryption(enabled, tenant)))

    async def rotate_encryption(self, tenant: str | None = None) -> Record:
        """Have a new key encrypt from now on; `operation_id` is how what is stored follows."""
        return Record(await self.request(calls.rotate_encryption(tenant)))

    async def _submitted(self, request: Request) -> AsyncRun:
        return AsyncRun({**await self.request(request), "status": "pending"}, self._read, self._cancel)

    async def _read(self, run: str) -> dict[str, Any]:
        return dict(await self.request(calls.get("runs", run)))

    async def _cancel(self, run: str) -> dict[str, Any]:
        return dict(await self.request(calls.cancel_run(run)))
