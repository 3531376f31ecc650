# Written by `make sdk` from sdk/aio/declaring.py: change that.
"""Schedules as code: the jobs that a worker's functions declare, and those that they declare no more."""

from typing import Any, Final

from foliot.sdk.client import Foliot
from foliot.sdk.records import Job
from foliot.sdk.worker import Task, Worker

_WORKER: Final = "foliot/worker"
"""The label by which a worker that has a name knows its own jobs."""


def declare(client: Foliot, worker: Worker) -> list[Job]:
    """Create the job of each function with a schedule, or make it what the code says. What is the same stays."""
    scheduled = [task for task in worker.tasks.values() if task.is_scheduled]
    return [client.put_job(task.key, task.name, task.name, **_fields(worker, task)) for task in scheduled]


def retire(client: Foliot, worker: Worker) -> tuple[list[Job], list[Job]]:
    """What is left of earlier versions of the worker: jobs that were dealt with now, and those to look at again.

    As long as a live worker serves the function, another version is at work, and its schedule stays.
    """
    left = _left(client, worker)
    served = _served(client) if left else set()
    gone = [job for job in left if f"fn:{job.handler.get('name')}" not in served]
    waiting = [job for job in left if f"fn:{job.handler.get('name')}" in served]
    match worker.retired:
        case "warn":
            return gone, waiting
        case "pause":
            return [client.pause_job(job.id) for job in gone if job.status != "paused"], waiting
        case "cancel":
            return [client.cancel_job(job.id) for job in gone], waiting


def _left(client: Foliot, worker: Worker) -> list[Job]:
    if worker.name is None:
        return []
    declared = {task.key for task in worker.tasks.values() if task.is_scheduled}
    page = client.list_jobs(label=f"{_WORKER}={worker.name}", limit=200)
    return [job for job in page.all() if job.key not in {None, *declared} and job.status != "cancelled"]


def _served(client: Foliot) -> set[str]:
    page = client.workers(state="live", limit=200)
    return {handler for each in page.all() for handler in each.handlers}


def _fields(worker: Worker, task: Task) -> dict[str, Any]:
    labels = {**(task.fields.get("labels") or {}), **({} if worker.name is None else {_WORKER: worker.name})}
    return {**task.fields, "labels": labels or None}
