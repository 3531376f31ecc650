# Written by `make sdk` from sdk/aio/jobs.py: change that.
"""Jobs: made, changed, run, and what became of their fire times."""

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from foliot.sdk import calls
from foliot.sdk.calls import Delay
from foliot.sdk.client.connection import Connection
from foliot.sdk.client.lasting import Run
from foliot.sdk.client.pages import Items
from foliot.sdk.fields import Handler, JobChanges, JobFields, Moment, NewJob
from foliot.sdk.records import Fires, Job, Record


class JobCalls(Connection):
    def create_job(
        self, name: str, handler: Handler, *, idempotency_key: str | None = None, **fields: Unpack[NewJob]
    ) -> Job:
        return Job(self.request(calls.create_job(name, handler, idempotency_key, fields)))

    def create_jobs(self, jobs: Iterable[Mapping[str, Any]], *, idempotency_key: str | None = None) -> list[str]:
        """Create up to 10,000 jobs, all or none, each from the fields that `create_job` takes; their ids, in order."""
        return list(self.request(calls.create_jobs(jobs, idempotency_key))["jobIds"])

    def put_job(
        self, key: str, name: str, handler: Handler, *, if_version: int | None = None, **fields: Unpack[JobFields]
    ) -> Job:
        """Create the job of this key, or make it what is given here; with `if_version`, only if it is at that still."""
        return Job(self.request(calls.put_job(key, name, handler, fields, if_version)))

    def get_job(self, job: str) -> Job:
        return Job(self.request(calls.get("jobs", job)))

    def get_job_by_key(self, key: str) -> Job:
        """The job of this key that is not cancelled."""
        return Job(self.request(calls.get("jobs", "by-key", key)))

    def explain_job(self, job: str) -> Record:
        """Why a job fires next or does not: `sentence`, `blocking`, `next_fire_at`, all `gates`, and its `runs`."""
        return Record(self.request(calls.get("jobs", job, "explain")))

    def list_versions(self, job: str, **query: Any) -> Items[dict[str, Any]]:
        """The definitions that a job has had, newest first."""
        return self._page(dict, "jobs", job, "versions", **query)

    def list_jobs(self, **query: Any) -> Items[Job]:
        return self._page(Job, "jobs", **query)

    def change_job(self, job: str, *, if_version: int | None = None, **fields: Unpack[JobChanges]) -> Job:
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
        at: Moment | None = None,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Run:
        """Run a job besides its schedule, with `payload` and `priority` of its own if given."""
        return Run({**self.request(calls.run_job(job, delay, at, idempotency_key, fields)), "status": "pending"}, self)

    def list_executions(self, job: str, **query: Any) -> Items[dict[str, Any]]:
        """The attempts of a job's runs, newest first."""
        return self._page(dict, "jobs", job, "executions", **query)

    def list_occurrences(self, job: str, **query: Any) -> Items[dict[str, Any]]:
        """Every fire time of a job and what became of it, newest first: `since`, `until`, `status`, `limit`."""
        return self._page(dict, "jobs", job, "occurrences", **query)

    def list_gaps(self, **query: Any) -> Items[dict[str, Any]]:
        """Fire times that jobs went without, newest first: `since`, `until`, `limit`."""
        return self._page(dict, "gaps", **query)

    def preview(self, job: str | None = None, **timing: Any) -> Fires:
        """The next fires of a recurrence: `cron_expression`, `timezone`, `every`, `rrule`, `when`, `count`, …

        With a `job`, what changing these fields of it would add, remove and leave, None taking one away; nothing is
        changed.
        """
        answer = self.request(calls.preview(job, timing))
        return Fires(answer["items"], answer["zoneData"])
