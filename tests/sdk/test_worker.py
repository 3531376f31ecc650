"""The worker as applications write it: names, schedules, and what is wrong with them."""

import asyncio
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest
import structlog

from foliot import Context, Worker
from foliot.cli.compose import CannotStart
from foliot.cli.serve_worker import _alone, _declare
from foliot.domain.errors import FoliotError, InvalidField
from foliot.sdk.aio.declaring import declare, retire
from foliot.sdk.apps import load_app, reference_of
from foliot.wire.limits import ConcurrencyBody
from foliot.worker.child.nursery import open_nursery
from foliot.worker.desk import WorkerDesk
from sdk.serving import Served
from worker import captive
from worker.crew import Crew
from world import PATIENCE, World


async def refresh(ctx: Context, payload: Any) -> None:
    """Stands for any function."""


def test_a_function_is_registered_under_its_name_and_left_as_it_is():
    worker = Worker()
    assert worker.task(refresh) is refresh
    assert worker.task(name="reports.build-daily")(refresh) is refresh
    assert list(worker.tasks) == ["refresh", "reports.build-daily"]
    assert not worker.tasks["refresh"].is_scheduled


def test_a_worker_carries_labels_and_a_function_may_require_them():
    worker = Worker(labels=["gpu", "eu", "gpu"])
    assert worker.labels == ("eu", "gpu")
    worker.task(refresh, cron="* * * * *", requires=["gpu"])
    assert worker.tasks["refresh"].fields["requires"] == ["gpu"]
    with pytest.raises(InvalidField, match="not a label"):
        worker.task(refresh, name="other", cron="* * * * *", requires=["no label"])
    with pytest.raises(InvalidField, match="not a label"):
        Worker(labels=["no label"])


def test_two_functions_cannot_share_a_name():
    worker = Worker()
    worker.task(refresh)
    with pytest.raises(InvalidField, match="two functions are called 'refresh'"):
        worker.task(refresh)


@pytest.mark.parametrize("name", ["7days", "no spaces", "ünicode", "x" * 201, "a/b", ".hidden"])
def test_names_are_plain(name: str):
    with pytest.raises(InvalidField, match="cannot name a function"):
        Worker().task(name=name)(refresh)


def test_what_has_no_name_of_its_own_needs_one():
    with pytest.raises(InvalidField, match="pass name="):
        Worker().task(lambda ctx, payload: None)


@pytest.mark.parametrize(
    "function", [lambda: None, lambda ctx: None, lambda a, b, c: None, lambda *, ctx, payload: None]
)
def test_a_function_that_cannot_take_its_arguments_is_told_at_once(function: Any):
    with pytest.raises(InvalidField, match=r"\(ctx, payload\)"):
        Worker().task(name="f")(function)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cron": "61 * * * *"}, "cronExpression"),
        ({"cron": "0 9 * * *", "timezone": "Mars/Base"}, "timezone"),
        ({"cron": "0 9 * * *", "every": 60}, "every"),
        ({"every": "PT0S"}, "every"),
        ({"every": 60, "max_retry": 3}, "maxRetry"),
        ({"every": 60, "max_retries": -1}, "maxRetries"),
        ({"every": 60, "concurrency": 0}, "concurrency.limit"),
        ({"every": 60, "concurrency": {"limit": 1, "key": "payload.account"}}, "payload"),
        ({"every": 60, "overlap": "explode"}, "overlap"),
    ],
)
def test_a_bad_schedule_is_told_when_it_is_written(options: dict[str, Any], said: str):
    with pytest.raises(InvalidField, match=said):
        Worker().task(**options)(refresh)


def test_options_that_nothing_uses_are_warned_about():
    with structlog.testing.capture_logs() as logs:
        Worker().task(max_retries=5)(refresh)
    assert [(each["log_level"], each["unused"]) for each in logs] == [("warning", ["max_retries"])]


def test_long_names_have_keys_of_their_own():
    worker = Worker()
    names = ["x" * 150 + end for end in ("a", "b")]
    for name in names:
        worker.task(name=name, every=60)(refresh)
    keys = [worker.tasks[name].key for name in names]
    assert keys[0] != keys[1]
    assert all(len(key) <= 63 for key in keys)


def test_isolation_is_process_or_nothing():
    worker = Worker()
    worker.task(isolation="process")(refresh)
    assert worker.tasks["refresh"].is_isolated
    with pytest.raises(InvalidField, match='use isolation="process", or leave it out'):
        Worker().task(isolation="thread")(refresh)


def test_a_worker_is_found_under_the_name_that_another_process_would_use(monkeypatch: pytest.MonkeyPatch, tmp_path):
    assert reference_of(Worker()) is None
    assert reference_of(captive.worker) == "worker.captive:worker"
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert load_app("worker.captive:worker") is captive.worker
    program = ModuleType("__main__")
    program.app = Worker()
    monkeypatch.setitem(sys.modules, "__main__", program)
    assert reference_of(program.app) is None  # typed in, or read from a pipe
    program.__file__ = str(tmp_path / "apps" / "shop.py")
    assert reference_of(program.app) is None  # not on the path
    sys.path.insert(0, str(tmp_path / "apps"))
    assert reference_of(program.app) == "shop:app"
    program.__spec__ = ModuleSpec("shop.__main__", None)
    assert reference_of(program.app) == "shop.__main__:app"


def test_a_module_that_serves_when_it_is_imported_is_told_how_not_to(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Worker, "may_serve", False)
    with pytest.raises(FoliotError, match="under `if __name__"):
        Worker().run()


async def test_a_function_that_no_other_process_can_find_keeps_its_worker_from_starting():
    worker = Worker()
    worker.task(isolation="process")(refresh)
    async with open_nursery() as nursery:
        with pytest.raises(
            CannotStart, match=r"'refresh' shall run in a process of its own.*foliot worker module:worker"
        ):
            await _alone(worker, nursery, WorkerDesk())


async def test_schedules_are_declared_by_key_when_a_worker_starts(
    foliot: Served, world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOLIOT_URL", foliot.url)
    monkeypatch.setenv("FOLIOT_KEY", foliot.key)
    worker = Worker()
    worker.task(name="reports.build", cron="*/5 * * * *", max_retries=5, concurrency=2, overlap="queue")(refresh)
    worker.task(name="x" * 150, every="PT1H")(refresh)
    worker.task(name="mornings", when="every weekday at 9:00", timezone="Europe/Berlin")(refresh)
    worker.task(name="second-tuesdays", rrule="FREQ=MONTHLY;BYDAY=2TU")(refresh)
    worker.task(name="some-minute", cron="H * * * *")(refresh)
    worker.task(refresh)
    for _ in range(2):
        await asyncio.wait_for(_declare(worker, asyncio.Event()), PATIENCE)
    jobs = (
        await world.insights.jobs(
            world.tenant, "acme", status=None, name=None, label=None, schedule_type=None, limit=10, cursor=None
        )
    ).items
    assert {job.name for job in jobs} == {"reports.build", "x" * 150, "mornings", "second-tuesdays", "some-minute"}
    declared = next(job for job in jobs if job.name == "reports.build")
    assert (declared.key, declared.max_retries) == ("task/reports.build", 5)
    assert (declared.concurrency, declared.overlap) == (ConcurrencyBody(2), "queue")
    assert declared.handler == {"type": "function", "name": "reports.build"}
    again = Worker()
    again.task(name="reports.build", every=60)(refresh)
    await asyncio.wait_for(_declare(again, asyncio.Event()), PATIENCE)
    async with foliot.aio() as client:
        found = await client.list_jobs(name="reports.build")
    assert [(job.every, job.version) for job in found] == [("PT1M", 2)]  # what was the same made no version


async def test_what_a_worker_declares_no_more_is_warned_about_paused_or_cancelled(
    foliot: Served, crew: Crew, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOLIOT_URL", foliot.url)
    monkeypatch.setenv("FOLIOT_KEY", foliot.key)
    first = Worker(name="shop")
    for name in ("old", "kept"):
        first.task(refresh, name=name, every=3600, labels={"team": "growth"})
    old, kept = await asyncio.wait_for(asyncio.to_thread(first.declare), PATIENCE)
    assert old.labels == {"team": "growth", "foliot/worker": "shop"}
    async with foliot.aio() as client:
        foreign = await client.put_job("task/other", "other", "other", every=3600)
        for retired, status in (("warn", "pending"), ("pause", "paused"), ("cancel", "cancelled")):
            now = Worker(name="shop", retired=retired)
            now.task(refresh, name="kept", every=3600, labels={"team": "growth"})
            with structlog.testing.capture_logs() as logs:
                await asyncio.wait_for(_declare(now, asyncio.Event()), PATIENCE)
            assert [each["key"] for each in logs if each["log_level"] == "warning"] == ["task/old"]
            assert (await client.get_job(old.id)).status == status
        assert [(await client.get_job(each.id)).status for each in (kept, foreign)] == ["pending"] * 2


async def test_the_schedule_of_a_function_that_another_version_serves_stays(foliot: Served, crew: Crew):
    new = Worker(name="shop", retired="cancel")
    new.task(refresh, name="fresh", every=3600)
    old = Worker(name="shop", retired="cancel")
    async with foliot.aio() as client:
        (job,) = await declare(client, new)
        async with crew.work({"fresh": refresh}):
            gone, waiting = await retire(client, old)
            assert ([], [job.id]) == (gone, [each.id for each in waiting])
        assert (await client.get_job(job.id)).status == "pending"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "a b"}, "name a worker"),
        ({"retired": "pause"}, "needs a name"),
        ({"name": "x", "retired": "?"}, "no '"),
    ],
)
def test_a_worker_that_cannot_know_its_own_jobs_is_told(options: dict[str, Any], said: str):
    with pytest.raises(InvalidField, match=said):
        Worker(**options)


async def test_a_worker_that_finds_no_foliot_says_so_and_goes_on():
    worker = Worker()
    worker.task(every=60)(refresh)
    with structlog.testing.capture_logs() as logs:
        await asyncio.wait_for(_declare(worker, asyncio.Event()), PATIENCE)
    assert [each["log_level"] for each in logs] == ["warning"]
    assert "FOLIOT_URL" in logs[0]["error"]


def test_queues_are_names_or_names_with_weights():
    assert Worker().queues == {"default": 1}
    assert Worker(queues=("fast", "bulk")).queues == {"fast": 1, "bulk": 1}
    assert Worker(queues={"fast": 3, "bulk": 1}).queues == {"fast": 3, "bulk": 1}
    with pytest.raises(InvalidField, match="from 1 to 1000"):
        Worker(queues={"fast": 0})
