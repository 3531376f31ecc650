"""Processes of their own: how attempts end there, and that nobody is left behind, whoever is stopped or killed."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import foliot
from foliot.domain.outcome import Ending, Returned
from foliot.kit.postgres.process import look_at
from foliot.sdk.desk import Desk
from foliot.worker import alone as alone_module
from foliot.worker.alone import Alone
from foliot.worker.child.child import CannotStart
from foliot.worker.child.inside import carry_out
from foliot.worker.child.nursery import Command, Nursery, open_nursery
from foliot.worker.executor import Assignment
from kit.launching import eventually
from worker import captive, making
from worker.making import assignment, function_spec
from worker.supervisor import ANSWER

APP = "worker.captive:worker"
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who descends from whom")


def to_do(name: str, payload: Any = None, **fields: Any) -> Assignment:
    return assignment(function_spec(name), payload=msgspec.json.encode(payload), **fields)


def gone(*pids: int) -> bool:
    return all((found := look_at(pid)) is None or found.zombie for pid in pids)


@pytest.fixture
async def nursery() -> AsyncIterator[Nursery]:
    async with open_nursery() as opened:
        yield opened


@pytest.fixture
async def alone(nursery: Nursery) -> AsyncIterator[Alone]:
    made = Alone(nursery, APP, spare=True)
    yield made
    made.close()


@pytest.fixture
def terminable() -> Iterator[None]:
    """What runs in a child listens to SIGTERM; afterwards we do as before."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("terminable")
def test_inside_an_attempt_ends_as_it_would_among_others():
    assert carry_out(captive.worker, to_do("plain")) is None
    assert carry_out(captive.worker, to_do("plain", "main thread")) is None
    assert carry_out(captive.worker, to_do("on_loop")) is None
    failed = carry_out(captive.worker, to_do("on_loop", 7, attempt=1))
    assert "ValueError: report run_" in failed.error
    raised = carry_out(captive.worker, to_do("plain", "raise"))
    assert "captive.py" in raised.error.splitlines()[1], "the handler's own frames only"
    assert raised.error.endswith("ValueError: it broke\n")
    assert carry_out(captive.worker, to_do("plain", "give up")).permanent
    assert carry_out(captive.worker, to_do("plain", "exit")).error == "the handler called sys.exit(3)"
    assert "is not registered" in carry_out(captive.worker, to_do("nobody")).error


async def test_a_process_answers_for_its_attempt_and_its_death_is_its_own(alone: Alone):
    assert await alone.isolated(to_do("plain")) is None
    assert await alone.isolated(to_do("plain", "return")) == Returned(b'{"rows":7}')
    assert (await alone.isolated(to_do("plain", "die"))).error == "its process ended with status 4"
    crashed = await alone.suspect(to_do("plain", "crash"))
    assert (crashed.ending, crashed.error) == (Ending.LOST, "its process was killed by SIGSEGV")


class NotingDesk(Desk):
    def __init__(self) -> None:
        self.noted: list[str] = []

    def hold(self, attempt: Assignment) -> None:
        self.noted.append("held")

    def extend(self, attempt: Assignment) -> None:
        self.noted.append("begun")


async def test_its_time_begins_with_the_function_and_not_with_the_start_of_the_process(nursery: Nursery):
    desk = NotingDesk()
    alone = Alone(nursery, APP, desk, spare=False)
    assert await alone.suspect(to_do("plain")) is None
    assert desk.noted == ["held", "begun"]


async def test_the_time_of_one_that_never_comes_to_its_function_begins_all_the_same(nursery: Nursery, monkeypatch):
    monkeypatch.setattr(alone_module, "START_UP", 0.0)
    desk = NotingDesk()
    alone = Alone(nursery, "worker.nowhere:worker", desk, spare=False)
    assert "cannot be imported" in (await alone.suspect(to_do("plain"))).error
    assert desk.noted == ["held", "begun"]


async def test_an_application_that_cannot_be_imported_fails_its_attempts_and_says_why(nursery: Nursery):
    alone = Alone(nursery, "worker.nowhere:worker", spare=True)
    for _ in range(2):
        failed = await alone.isolated(to_do("plain"))
        assert "worker.nowhere:worker cannot be imported in a process of its own" in failed.error
        assert "there is no module 'worker.nowhere' here" in failed.error
    alone.close()


async def test_what_cannot_be_executed_says_so(nursery: Nursery):
    with pytest.raises(CannotStart, match="No such file or directory"):
        await nursery.start(Command(["/nowhere/at/all"], {0: 0}))


@linux
@pytest.mark.parametrize("mood", ["heeding", "deaf"])
async def test_a_cancelled_attempt_is_killed_with_everybody_it_left_behind(
    alone: Alone, tmp_path: Path, mood: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(alone_module, "GRACE", timedelta(seconds=0.5 if mood == "deaf" else 40))
    place = tmp_path / "hang"
    attempt = asyncio.ensure_future(alone.isolated(to_do("hang", {"place": str(place), "mood": mood})))
    child, orphan = await _pids(place)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert gone(child, orphan)
    assert place.with_suffix(".cleaned").exists() == (mood == "heeding")


async def _pids(place: Path) -> tuple[int, int]:
    """Of a handler that hangs, and of whom it left behind; two imports may have to be waited for."""
    files = [place.with_suffix(".child"), place.with_suffix(".orphan")]
    async with asyncio.timeout(40):
        while not all(file.exists() and file.read_text() for file in files):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    child, orphan = (int(file.read_text()) for file in files)
    return child, orphan


@contextmanager
def supervisor(place: Path, lease: float = 60) -> "Iterator[subprocess.Popen[str]]":
    paths = [str(Path(__file__).parents[1]), str(Path(foliot.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": ":".join(paths)}
    command = [sys.executable, "-m", "worker.supervisor", str(place), str(lease)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def answer(process: "subprocess.Popen[str]") -> str:
    for line in process.stdout:
        if line.startswith(ANSWER):
            return line.removeprefix(ANSWER).strip()
    raise AssertionError("it ended without an answer")


def _guards(child: int) -> tuple[int, int]:
    """The guard of a child, and the guardian that appointed it."""
    guard = _parent(child)
    return guard, _parent(guard)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@linux
async def test_a_stopped_supervisor_leaves_nobody_running_past_its_lease(tmp_path: Path):
    place, lease = tmp_path / "hang", 3.0
    with supervisor(place, lease) as process:
        pids = await _pids(place)
        process.send_signal(signal.SIGSTOP)
        at = time.monotonic()
        eventually(lambda: gone(*pids))
        assert lease / 2 < time.monotonic() - at < 2 * lease
        process.send_signal(signal.SIGCONT)
        assert "this worker stood still for its whole lease" in answer(process)
        assert answer(process) == "None", "it goes on with the next attempt"
        assert process.wait(40) == 0


@linux
async def test_no_terminal_ends_the_guardian_and_a_killed_supervisor_leaves_nobody_not_even_that(tmp_path: Path):
    place = tmp_path / "hang"
    with supervisor(place) as process:
        child, orphan = await _pids(place)
        guards = _guards(child)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for pid in guards:
                os.kill(pid, number)
        assert os.getpgid(guards[0]) != os.getpgid(process.pid), "Ctrl-C goes to the supervisor's group"
        assert not gone(*guards)
        assert not gone(child)
        process.kill()
        at = time.monotonic()
        eventually(lambda: gone(child, orphan, *guards))
        assert time.monotonic() - at < 20, "nobody waited for the lease"


@linux
@pytest.mark.parametrize("victim", ["guard", "both"])
async def test_a_killed_guard_takes_its_child_along_and_another_one_is_found(tmp_path: Path, victim: str):
    place = tmp_path / "hang"
    with supervisor(place) as process:
        child, orphan = await _pids(place)
        guard, guardian = _guards(child)
        if victim == "both":
            os.kill(guardian, signal.SIGKILL)
        os.kill(guard, signal.SIGKILL)
        try:
            eventually(lambda: gone(child))
            assert "its process was lost, with its guard" in answer(process)
            assert answer(process) == "None", "there is another guardian"
            assert process.wait(40) == 0
            if victim == "guard":
                eventually(lambda: gone(orphan))
        finally:
            if victim == "both":
                os.kill(orphan, signal.SIGKILL)  # it left its group, and nobody who knew it is left


async def test_what_a_guardian_takes_along_when_it_is_killed_is_started_again_if_it_can_have_done_nothing(alone: Alone):
    nursery = alone._nursery
    assert (await alone.isolated(to_do("plain"))) is None
    alone.close()
    former, _ = nursery._guardian

    async def take_along(starting: "asyncio.Future[Any]") -> "asyncio.Future[Any]":
        keeper, _ = nursery._guardian
        os.kill(keeper.pid, signal.SIGSTOP)
        before = set(nursery._children)
        asked = asyncio.ensure_future(starting)
        await making.eventually(lambda: nursery._children - before)  # the order is on its way
        os.kill(keeper.pid, signal.SIGKILL)
        return asked

    alone._spare = None
    assert await (await take_along(alone.isolated(to_do("plain")))) is None
    assert nursery._guardian[0].pid != former.pid
    lost = await take_along(nursery.start(Command(["/bin/true"], {1: 1, 2: 2})))
    with pytest.raises(CannotStart, match="its guard ended before it began"):
        await lost
    assert (await (await nursery.start(Command(["/bin/true"], {1: 1, 2: 2}))).ended()).status == 0


async def test_children_of_a_worker_that_is_cut_off_may_finish_unless_they_are_bound(nursery: Nursery):
    """The database is away, the supervisor is not."""
    reading, writing = os.pipe()
    command = Command(["/bin/cat"], {0: reading, 1: 1, 2: 2})
    free = await nursery.start(command)
    nursery.hold(nursery._clock() + 60)
    bound = await nursery.start(command._replace(bound=True))
    nursery.hold(nursery._clock() + 0.1)
    assert (await bound.ended()).lapsed
    assert not free.is_over
    os.close(reading)
    os.close(writing)
    assert (await free.ended()).status == 0
