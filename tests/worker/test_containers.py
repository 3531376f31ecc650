"""Containers: what an engine is told, how they end, and that none outlives its attempt."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from foliot.domain.outcome import Failure
from foliot.domain.spec import Resources
from foliot.worker.child.nursery import open_nursery
from foliot.worker.commands import attendant as attendant_module
from foliot.worker.commands.containers import Engine, find_engine
from foliot.worker.commands.executor import NOT_ALLOWED
from foliot.worker.commands.folders import open_folders
from worker.dock import IMAGE, Dock
from worker.engine import Service, open_engine
from worker.making import eventually


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "postgresql://secret")
    async with open_engine(tmp_path) as opened:
        yield opened


@pytest.fixture
async def dock(service: Service, tmp_path: Path) -> AsyncIterator[Dock]:
    engine = await find_engine(["/nowhere/podman", str(tmp_path / "engine")])
    assert engine is not None
    async with open_nursery() as nursery:
        with open_folders(tmp_path) as folders:
            yield Dock(engine, nursery, folders)


async def test_an_engine_is_told_no_more_than_it_needs_and_the_exit_status_is_the_answer(dock: Dock, service: Service):
    small = Resources(cpus=0.5, memory_mib=9_999)
    assert await dock.run("grep -q n", env={"LD_PRELOAD": "/evil.so", "A": "b c"}, resources=small) is None
    *_, asked = service.asked
    words, image = asked["words"], asked["words"].index("--") + 1
    assert words[image:] == [IMAGE, "grep -q n"]
    assert {"ALL", "no-new-privileges", "--rm"} <= set(words[:image])
    for option, value in (("--network", "none"), ("--pids-limit", "50"), ("--memory", "512m"), ("--cpus", "0.5")):
        assert words[words.index(option) + 1] == value
    assert asked["environment"].keys() <= {"HOME", "PATH", "XDG_RUNTIME_DIR", "LC_CTYPE"}
    given = dict(line.split("=", 1) for line in asked["variables"].splitlines())
    assert given.items() >= {"LD_PRELOAD": "/evil.so", "A": "b c", "TZ": "UTC", "FOLIOT_ATTEMPT": "1"}.items()
    assert given.keys().isdisjoint({"PATH", "HOME", "FOLIOT_DATABASE_URL"})
    failed = await dock.run("echo why >&2; exit 3", "sales")
    assert failed == Failure("the command ended with status 3\nwhy", classes=("exit:3",))
    assert "--network" not in service.asked[-1]["words"]


async def test_an_image_that_the_operator_does_not_allow_is_not_run(dock: Dock, service: Service):
    asked = len(service.asked)
    for tenant, image in (("growth", "docker.io/evil"), ("nobody", IMAGE)):
        answer = await dock.run("exit 0", tenant, image=image)
        assert (answer.permanent, answer.classes) == (True, (NOT_ALLOWED,))
    assert len(service.asked) == asked


@pytest.mark.parametrize("mood", ["heeding", "deaf"])
async def test_a_cancelled_container_is_told_to_stop_and_then_removed(
    dock: Dock, service: Service, mood: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The engine's service runs it, so that no killed process takes it along."""
    monkeypatch.setattr(attendant_module, "GRACE", timedelta(seconds=0.3 if mood == "deaf" else 20))
    trap = "trap '' TERM" if mood == "deaf" else "trap 'exit 1' TERM"
    script = f"{trap}; : > '{tmp_path}/up'; while :; do sleep 0.01; done"
    started = asyncio.ensure_future(dock.run(script))
    await eventually(lambda: started.done() or (service.containers and (tmp_path / "up").exists()))
    (container,) = service.containers.values()
    started.cancel()
    with pytest.raises(asyncio.CancelledError):
        await started
    assert container.returncode == (-9 if mood == "deaf" else 1)


async def test_a_container_whose_engine_hung_up_is_removed(dock: Dock, service: Service, tmp_path: Path):
    """The engine's program has ended by itself, and not well: what it started may run on."""
    started = asyncio.ensure_future(dock.run(f": > '{tmp_path}/up'; while :; do sleep 0.01; done"))
    await eventually(lambda: started.done() or (service.containers and (tmp_path / "up").exists()))
    (container,) = service.containers.values()
    service.hang_up()
    answer = await started
    assert isinstance(answer, Failure)
    assert "ended with status 1" in answer.error
    assert container.returncode == -9


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_container_does_not_outlive_a_worker_that_is_killed_or_stands_still(
    service: Service, end: signal.Signals, tmp_path: Path
):
    script = f"trap '' TERM; : > '{tmp_path}/up'; while :; do sleep 0.01; done"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "worker.dock", str(tmp_path), script, env=environment
    )
    try:
        await eventually(lambda: service.containers and (tmp_path / "up").exists())
        (container,) = service.containers.values()
        worker.send_signal(end)
        await eventually(lambda: container.returncode == -9)
    finally:
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.wait()


@pytest.mark.parametrize("value", ["-----BEGIN KEY-----\nabc\n", "a\rb"])
async def test_a_variable_of_several_lines_is_refused_for_good(dock: Dock, service: Service, value: str):
    """A line of the file that hands them over is a variable: the second would be one of its writer's choice."""
    asked = len(service.asked)
    answer = await dock.run("exit 0", env={"PEM": value})
    assert isinstance(answer, Failure)
    assert answer.permanent
    assert "PEM" in answer.error
    assert "BEGIN KEY" not in answer.error
    assert len(service.asked) == asked


async def test_a_program_whose_service_does_not_answer_is_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    async with open_engine(tmp_path):
        pass
    (tmp_path / "engine.sock").unlink(missing_ok=True)
    assert await find_engine([str(tmp_path / "engine"), "no-engine-of-that-name"]) is None


@pytest.mark.skipif("FOLIOT_TEST_IMAGE" not in os.environ, reason="FOLIOT_TEST_IMAGE names no image that has a /bin/sh")
async def test_a_real_engine_runs_and_removes_containers(tmp_path: Path):
    engine = await find_engine()
    assert engine is not None, "neither podman nor docker answers"
    image = {"image": os.environ["FOLIOT_TEST_IMAGE"]}
    async with open_nursery() as nursery:
        with open_folders(tmp_path) as folders:
            dock = Dock(engine, nursery, folders)
            script = 'grep -q "n" && test "$FOLIOT_ATTEMPT" = 1 && ! touch /proc/sys/kernel/domainname'
            assert await dock.run("", "sales", **image, args=("/bin/sh", "-c", script)) is None
            failed = await dock.run("", "sales", **image, args=("/bin/sh", "-c", "echo why >&2; exit 3"))
            assert failed == Failure("the command ended with status 3\nwhy", classes=("exit:3",))
            deaf = "trap '' TERM; echo up; while :; do sleep 1; done"
            started = asyncio.ensure_future(dock.run("", "sales", **image, args=("/bin/sh", "-c", deaf)))
            await eventually(lambda: started.done() or _containers(engine))
            started.cancel()
            with pytest.raises(asyncio.CancelledError):
                await started
    assert not _containers(engine)


def _containers(engine: Engine) -> list[str]:
    words = [engine.program, "ps", "--all", "--quiet", "--filter", "name=foliot-run"]
    return subprocess.run(words, env=engine.environment, capture_output=True, text=True, check=True).stdout.split()
