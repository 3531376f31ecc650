"""The client that waits for each answer."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from foliot.sdk import calls, protocol, transaction
from foliot.sdk.calls import Delay, Handler, Moment
from foliot.sdk.protocol import Request
from foliot.sdk.records import Calendar, Fires, Items, Job, Operation, Record, Run


class Foliot:
    """Talks to Foliot and waits for each answer. Finds a local instance by itself; needs no closing."""

    def __init__(self, url: str | None = None, key: str | None = None, *, timeout: float = 30) -> None:
        self._access = protocol.access_or_fail(url, key)
        self._timeout = timeout

    def request(self, request: Request) -> Any:
        call = urllib.request.Request(  # noqa: S310 - the scheme was checked
            self._access.url + request.path,
            data=request.body,
            method=request.method,
            headers=request.headers(self._access),
        )
        try:
            with urllib.request.urlopen(call, timeout=self._timeout) as response:  # noqa: S310 - as above
                return protocol.unpack(response.status, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return protocol.unpack(error.code, error.read())
        except (OSError, http.client.HTTPException) as error:
            raise protocol.unreachable(self._access, error) from None

    def submit(
        self,
        handler: Handler,
        payload: Any = None,
        *,
        delay: Delay = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
        connection: Any = None,
        **policy: Any,
    ) -> Run:
        """Run a function or call an address once: now, after `delay`, or `at` an instant. On disk when this returns.

        With a `connection` to Foliot's database it is part of the transaction there: on disk when that commits.
        """
        request = calls.submit(handler, payload, delay, at, idempotency_key, policy)
        if connection is None:
            return self._submitted(request)
        run = transaction.submit(self._access, connection, request)
        return Run({"runId": run, "status": "pending"}, self._read, self._cancel)

    def create_job(self, name: str, handler: Handler, *, idempotency_key: str | None = None, **fields: Any) -> Job:
        return Job(self.request(calls.create_job(name, handler, idempotency_key, fields)))

    def create_jobs(self, jobs: Iterable[Mapping[str, Any]], *, idempotency_key: str | None = None) -> list[str]:
        """Create up to 10,000 jobs, all or none, each from the fields that `create_job` takes; their ids, in order."""
        return list(self.request(calls.create_jobs(jobs, idempotency_key))["jobIds"])

    def put_job(self, key: str, name: str, handler: Handler, **fields: Any) -> Job:
        """Create the job of this key, or make it what is given here."""
        return Job(self.request(calls.put_job(key, name, handler, fields)))

    def get_job(self, job: str) -> Job:
        return Job(self.request(calls.get("jobs", job)))

    def list_jobs(self, **query: Any) -> Items[Job]:
        page = self.request(calls.get("jobs", **query))
        return Items(map(Job, page["items"]), page["nextCursor"])

    def change_job(self, job: str, *, if_version: int | None = None, **fields: Any) -> Job:
        """Change these fields; None takes one away. With `if_version`, only if that is the job's version still."""
        return Job(self.request(calls.change_job(job, fields, if_version)))

    def pause_job(self, job: str) -> Job:
        return Job(self.request(calls.operate(job, "pause")))

    def resume_job(self, job: str) -> Job:
        return Job(self.request(calls.operate(job, "resume")))

    def cancel_job(self, job: str) -> Job:
        return Job(self.request(calls.operate(job, "cancel")))

    def delete_job(self, job: str, *, purge: bool = False, if_version: int | None = None) -> Job:
        """Cancel a job; with `purge`, also erase it with its history, once nothing of it goes on any more."""
        return Job(self.request(calls.delete_job(job, if_version, purge=purge)))

    def run_job(
        self,
        job: str,
        *,
        delay: Delay = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Run:
        """Run a job besides its schedule, with `payload` and `priority` of its own if given."""
        return self._submitted(calls.run_job(job, delay, at, idempotency_key, fields))

    def list_executions(self, job: str, **query: Any) -> Items[dict[str, Any]]:
        """The attempts of a job's runs, newest first."""
        page = self.request(calls.get("jobs", job, "executions", **query))
        return Items(page["items"], page["nextCursor"])

    def get_run(self, run: str) -> Run:
        return Run(self._read(run), self._read, self._cancel)

    def wait(self, run: str, timeout: float = 300) -> Run:
        """Wait for a run's end, up to `timeout` seconds, then TimeoutError."""
        return self.get_run(run).wait(timeout)

    def preview(self, job: str | None = None, **timing: Any) -> Fires:
        """The next fires of a recurrence: `cron_expression`, `timezone`, `every`, `rrule`, `when`, `count`, …

        With a `job`, what changing these fields of it would add, remove and leave; nothing is changed.
        """
        answer = self.request(calls.preview({"job": job, **timing}))
        return Fires(answer["items"], answer["zoneData"])

    def list_runs(self, **query: Any) -> Items[Run]:
        page = self.request(calls.get("runs", **query))
        return Items((Run(each, self._read, self._cancel) for each in page["items"]), page["nextCursor"])

    def signing_secret(self) -> str:
        """What calls of HTTP handlers are signed with: `whsec_…`."""
        return str((self.request(calls.get("signing-secret")))["secret"])

    def get_graph(self, run: str) -> Record:
        """The graph that a run is part of: `nodes` with their states, `edges`, and how it stands as a whole."""
        return Record(self.request(calls.get("runs", run, "graph")))

    def cancel_graph(self, run: str) -> Record:
        """Cancel the graph that a run is part of: what waits ends, what runs is asked to stop."""
        return Record(self.request(calls.cancel_graph(run)))

    def list_attempts(self, run: str, **query: Any) -> Items[dict[str, Any]]:
        """The attempts of a run, newest first."""
        page = self.request(calls.get("runs", run, "attempts", **query))
        return Items(page["items"], page["nextCursor"])

    def list_occurrences(self, job: str, **query: Any) -> Items[dict[str, Any]]:
        """Every fire time of a job and what became of it, newest first: `since`, `until`, `status`, `limit`."""
        page = self.request(calls.get("jobs", job, "occurrences", **calls.span(query)))
        return Items(page["items"], page["nextCursor"])

    def list_gaps(self, **query: Any) -> Items[dict[str, Any]]:
        """Fire times that jobs went without, newest first: `since`, `until`, `limit`."""
        page = self.request(calls.get("gaps", **calls.span(query)))
        return Items(page["items"], page["nextCursor"])

    def backfill(
        self,
        job: str,
        start: Moment,
        until: Moment,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Operation:
        """Run a job's instants from `start` to `until`: `concurrency`, `order`, `reprocess`, `name`, `dry_run`."""
        request = calls.backfill(job, start, until, idempotency_key, fields)
        return Operation(self.request(request), self._read_operation)

    def operation(self, operation: str) -> Operation:
        return Operation(self._read_operation(operation), self._read_operation)

    def operations(self, **query: Any) -> Items[Operation]:
        page = self.request(calls.get("operations", **query))
        return Items((Operation(each, self._read_operation) for each in page["items"]), page["nextCursor"])

    def cancel_operation(self, operation: str) -> Operation:
        """Hand out nothing more and end what waits; what runs goes on."""
        return Operation(self.request(calls.cancel_operation(operation)), self._read_operation)

    def _read_operation(self, operation: str) -> dict[str, Any]:
        return dict(self.request(calls.get("operations", operation)))

    def cancel_run(self, run: str) -> Run:
        """End a run that waits, or ask for the end of one that runs: it is over by `stops_by`."""
        return Run(self._cancel(run), self._read, self._cancel)

    def retry_run(self, run: str) -> Run:
        """Let a run that has used its attempts go on."""
        return Run(self.request(calls.retry_run(run)), self._read, self._cancel)

    def dead_letters(self, **query: Any) -> Items[dict[str, Any]]:
        """Runs that have used their attempts, newest first: `job`, `error_class`, `text`, `since`, `until`, …"""
        page = self.request(calls.get("dead-letters", **calls.span(query)))
        return Items(page["items"], page["nextCursor"])

    def dead_letter(self, run: str) -> dict[str, Any]:
        """A dead letter with its payload, its error and its attempts (`executions`)."""
        return dict(self.request(calls.get("dead-letters", run)))

    def replay(self, runs: Iterable[str], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Let up to 1,000 dead letters go on, now: `runIds` were, `refused` were not, each with the `reason`."""
        return dict(self.request(calls.decide("replay", runs, idempotency_key)))

    def discard(self, runs: Iterable[str], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Give up to 1,000 dead letters up, now; the answer is as that of `replay`."""
        return dict(self.request(calls.decide("discard", runs, idempotency_key)))

    def replay_where(
        self,
        *,
        per_second: float | None = None,
        concurrency: int | None = None,
        name: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        **where: Any,
    ) -> Operation:
        """Let all dead letters go on for which `where` holds (as in `dead_letters`; all without), at a pace."""
        options = {"per_second": per_second, "concurrency": concurrency, "name": name, "dry_run": dry_run}
        return self._swept(calls.sweep("replay", where, options, idempotency_key))

    def discard_where(
        self, *, name: str | None = None, dry_run: bool = False, idempotency_key: str | None = None, **where: Any
    ) -> Operation:
        """Give all dead letters up for which `where` holds (as in `dead_letters`; all without)."""
        return self._swept(calls.sweep("discard", where, {"name": name, "dry_run": dry_run}, idempotency_key))

    def _swept(self, request: Request) -> Operation:
        return Operation(self.request(request)["operation"], self._read_operation)

    def list_calendars(self, **query: Any) -> Items[Calendar]:
        page = self.request(calls.get("calendars", **query))
        return Items(map(Calendar, page["items"]), page["nextCursor"])

    def get_calendar(self, name: str) -> Calendar:
        return Calendar(self.request(calls.get("calendars", name)))

    def put_calendar(self, name: str, **fields: Any) -> Calendar:
        """Create a calendar or replace it: `timezone`, `business_days`, `holidays`, `blackouts`."""
        return Calendar(self.request(calls.put_calendar(name, fields)))

    def import_calendar(self, name: str, ics: str, *, mode: str | None = None, timezone: str | None = None) -> Calendar:
        """Take over the events of an iCalendar file; `unread` of the answer says which lines could not be read."""
        return Calendar.imported(self.request(calls.import_calendar(name, ics, mode, timezone)))

    def preview_calendar(
        self, name: str, *, since: datetime | str | None = None, until: datetime | str | None = None
    ) -> list[dict[str, Any]]:
        """The times at which a calendar allows no work: from now on, or within bounds."""
        return list((self.request(calls.preview_calendar(name, since, until)))["items"])

    def delete_calendar(self, name: str) -> Calendar:
        """Delete a calendar that no job follows."""
        return Calendar(self.request(calls.delete_calendar(name)))

    def workers(self, **query: Any) -> Items[Record]:
        """Workers, newest first: what they offer and have in hand; `state` live, draining or dead."""
        page = self.request(calls.get("workers", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    def drain_worker(self, worker: str) -> Record:
        """Have a worker claim nothing more, finish what it runs, and leave."""
        return Record(self.request(calls.drain_worker(worker)))

    def queues(self, **query: Any) -> Items[Record]:
        """Queues by name: what waits, how long, who serves it, what is paused."""
        page = self.request(calls.get("queues", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    def audit(self, **query: Any) -> Items[Record]:
        """Changes and denied attempts, newest first; `subject`, `action`, `since` and others narrow it down."""
        page = self.request(calls.get("audit", **calls.span(query)))
        return Items(map(Record, page["items"]), page["nextCursor"])

    def pause_queue(self, queue: str) -> Record:
        """Have nothing of a queue start until it is resumed; `holds_by` of the answer says from when on."""
        return Record(self.request(calls.hold_queue(queue, "pause")))

    def resume_queue(self, queue: str) -> Record:
        return Record(self.request(calls.hold_queue(queue, "resume")))

    def tenants(self, **query: Any) -> Items[Record]:
        """Tenants by name: all of them for an operator's key, its own for any other."""
        page = self.request(calls.get("tenants", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    def create_tenant(self, name: str, **first_key: Any) -> Record:
        """Create a tenant; `key` of the answer is its first key (`role`, `serves`), in plain text this once."""
        return Record(self.request(calls.create_tenant(name, first_key)))

    def get_tenant(self, tenant: str) -> Record:
        """The tenant of this client's key: its `weight`, its `limits`, and how many runs wait for them."""
        return Record(self.request(calls.get("tenants", tenant)))

    def limit_tenant(self, tenant: str, *, concurrency: int | None) -> Record:
        """Let so many runs of the tenant go at once, over all its jobs; None takes the limit away."""
        return Record(self.request(calls.limit_tenant(tenant, concurrency)))

    def keys(self, **query: Any) -> Items[Record]:
        """Keys of one's own tenant, newest first: `name`, `status`; an operator may name another `tenant`."""
        page = self.request(calls.get("keys", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    def get_key(self, key: str) -> Record:
        """What a key (`key_…`) may do, until when, and when it was last used."""
        return Record(self.request(calls.get("keys", key)))

    def create_key(self, name: str, **fields: Any) -> Record:
        """Create a key: `role`, `scopes`, `serves`, `expires_in`; the answer has it as `key`, this once."""
        return Record(self.request(calls.create_key(name, fields)))

    def rotate_key(self, key: str, **fields: Any) -> Record:
        """Create a `key` that may do the same; the `former` one ends after `overlap`, a day by default."""
        return Record(self.request(calls.rotate_key(key, fields)))

    def revoke_key(self, key: str) -> Record:
        """Within 5 seconds it opens nothing any more."""
        return Record(self.request(calls.revoke_key(key)))

    def secrets(self, **query: Any) -> Items[Record]:
        """Secrets by name: `version` and `updated_at`, never what they are."""
        page = self.request(calls.get("secrets", **query))
        return Items(map(Record, page["items"]), page["nextCursor"])

    def set_secret(self, name: str, value: str) -> Record:
        """Keep a secret, or another value of it, for runs that refer to it as `{"$secret": name}`."""
        return Record(self.request(calls.set_secret(name, value)))

    def delete_secret(self, name: str) -> Record:
        """Runs that refer to it fail from now on."""
        return Record(self.request(calls.delete_secret(name)))

    def get_encryption(self, tenant: str | None = None) -> Record:
        """Whether payloads are encrypted (`enabled`), and with which `key_version`; an operator may name a tenant."""
        return Record(self.request(calls.get("encryption", tenant=tenant)))

    def switch_encryption(self, *, enabled: bool, tenant: str | None = None) -> Record:
        """Encrypt payloads, results and errors from now on, or no more; `operation_id` does so with what is stored."""
        return Record(self.request(calls.switch_encryption(enabled, tenant)))

    def rotate_encryption(self, tenant: str | None = None) -> Record:
        """Have a new key encrypt from now on; `operation_id` is how what is stored follows."""
        return Record(self.request(calls.rotate_encryption(tenant)))

    def _submitted(self, request: Request) -> Run:
        return Run({**self.request(request), "status": "pending"}, self._read, self._cancel)

    def _read(self, run: str) -> dict[str, Any]:
        return dict(self.request(calls.get("runs", run)))

    def _cancel(self, run: str) -> dict[str, Any]:
        return dict(self.request(calls.cancel_run(run)))
