"""Commands: how they end, what they are given, what is kept of them, and that none of them stays."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foliot.domain.errors import FoliotError
from foliot.domain.outcome import Ending, Failure, Returned
from foliot.domain.spec import CommandHandler, Spec
from foliot.domain.verdict import outcome_of
from foliot.worker.child.child import CannotStart, Child, Forsaken
from foliot.worker.child.confine import PARTS
from foliot.worker.child.nursery import Command
from foliot.worker.commands import attendant as attendant_module
from foliot.worker.commands import isolation as isolation_module
from foliot.worker.commands.executor import NOT_ALLOWED, argv_of
from foliot.worker.commands.folders import open_folders, remove
from foliot.worker.commands.isolation import FIRST_ID, IDS, account_of, probe
from foliot.worker.commands.output import KEPT
from foliot.worker.commands.verdict import error_of
from kit.launching import eventually as soon
from kit.launching import needs_root
from worker.lab import OWN, Lab, as_process, living, open_lab
from worker.making import assignment, eventually

GRACE = timedelta(seconds=0.3)
pytestmark = needs_root  # as an ordinary user: test_command_escapes.py
with_and_without_walls = pytest.mark.parametrize("walls", [True, False], ids=["walls", "bare"])


@pytest.fixture
def walls() -> None:
    """What can be had here will do."""


@pytest.fixture
async def lab(walls: bool | None) -> AsyncIterator[Lab]:
    async with open_lab(walls=walls) as opened:
        yield opened


@with_and_without_walls
async def test_the_exit_status_is_the_answer_and_the_end_of_stderr_says_why(lab: Lab, walls: bool):
    assert await lab.sh("exit 0") is None
    failed = await lab.sh("echo out; echo 'no such table' >&2; exit 3")
    assert failed == Failure("the command ended with status 3\nno such table", classes=("exit:3",))
    assert (await lab.sh("echo only here; exit 1")).error == "the command ended with status 1\nonly here"
    killed = await lab.sh("kill -SEGV $$")
    assert (killed.error, killed.classes) == ("the command was killed by SIGSEGV", ("crashed",))
    missing = await lab.run("/nowhere/at/all")
    assert missing.error == "/nowhere/at/all: it could not be started: No such file or directory"
    assert "FileNotFoundError" in missing.classes
    assert list(lab.folders._place.iterdir()) == []


async def test_what_a_command_prints_is_its_result_if_it_is_json_and_nothing_else(lab: Lab):
    assert await lab.sh("echo '{\"rows\": 7}'", secrets=["swordfish"]) == Returned(b'{"rows": 7}')
    assert await lab.sh("echo '[\"swordfish\"]'", secrets=["swordfish"]) == Returned(b'["[secret]"]')
    assert await lab.sh("echo null; exit 0") is None
    assert await lab.sh("echo 1; echo 2") is None


async def test_a_flood_of_output_is_cut_to_its_end_and_it_says_how_much(lab: Lab):
    failed = await lab.sh("yes | head -c 3000000 >&2; echo the end >&2; exit 1")
    first, second, *lines = failed.error.splitlines()
    assert (first, lines[-1]) == ("the command ended with status 1", "the end")
    kept = len("\n".join(lines)) + 1
    assert second == f"[{3_000_008 - kept:,} bytes before this are cut]"
    assert lab.heard[-1].cut == 3_000_008 - KEPT
    assert len(lab.heard[-1].stderr) == KEPT


def test_an_error_never_loses_how_the_command_ended():
    error = error_of("the command ended with status 9", "x" * 100_000, 5)
    assert error.startswith("the command ended with status 9\n[92,")
    assert len(error) <= 8_192


async def test_a_command_is_given_its_payload_its_run_and_nothing_else(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FOLIOT_DATABASE_URL", "postgresql://somewhere")
    operator = {"environment": {"TZ": "UTC"}, "tenants": {"*": {"allow": ["*"], "environment": {"TEAM": "growth"}}}}
    assert await lab.sh("cat; echo; env; pwd", payload={"n": 1}, policy=operator) is None
    first, *lines = lab.said.splitlines()
    assert json.loads(first) == {"n": 1}
    given = dict(line.split("=", 1) for line in lines if "=" in line)
    home = "/tmp" if "mount" in lab.isolation.parts else given["HOME"]
    run = given.pop("FOLIOT_RUN")
    assert run.startswith("run_")
    assert given.pop("PATH").startswith("/usr/local/sbin:")
    assert given == {
        "FOLIOT_NAME": "report",
        "FOLIOT_ATTEMPT": "1",
        "FOLIOT_FENCE": "7",
        "FOLIOT_SCHEDULED_AT": "2026-11-15T20:16:25Z",
        "TRACEPARENT": given["TRACEPARENT"],
        "HOME": home,
        "TMPDIR": home,
        "PWD": home,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TEAM": "growth",
    }
    assert lines[-1] == home


def test_the_words_of_an_adhoc_run_travel_with_it():
    adhoc = assignment(Spec(handler=CommandHandler()), target=b'{"argv":["/bin/echo","a b"]}')
    assert argv_of(adhoc) == ["/bin/echo", "a b"]
    assert argv_of(assignment(Spec(handler=CommandHandler(("/bin/echo", "c"))))) == ["/bin/echo", "c"]


async def test_no_shell_reads_the_words(lab: Lab):
    assert await lab.run("/bin/echo", "$HOME;", "a  b", "*", "`id`") is None
    assert lab.said == "$HOME; a  b * `id`\n"


async def test_what_the_operator_does_not_allow_is_a_failure_for_good_and_nothing_is_started(lab: Lab):
    policy = {"tenants": {"growth": {"allow": ["/bin/echo", ["/bin/sh", "-c", "exit 0"]]}}}
    assert await lab.run("/bin/echo", policy=policy, tenant=("growth", 1)) is None
    assert await lab.run("echo", "by its name", policy=policy, tenant=("growth", 1)) is not None, "/usr/bin comes first"
    assert await lab.sh("exit 0", policy=policy, tenant=("growth", 1)) is None
    heard = len(lab.heard)
    for refused, tenant in (
        (("/bin/sh", "-c", "exit 1"), "growth"),
        (("/bin/../bin/echo",), "growth"),
        (("./echo",), "growth"),
        (("/bin/echo",), "sales"),
    ):
        answer = await lab.run(*refused, policy=policy, tenant=(tenant, 1))
        assert (answer.permanent, answer.classes) == (True, (NOT_ALLOWED,))
        assert repr(refused[0]) in answer.error
        assert repr(tenant) in answer.error
    assert len(lab.heard) == heard


async def test_secrets_that_a_command_prints_are_not_kept(lab: Lab):
    failed = await lab.sh("echo token=hunter22 >&2; printf hunter22 | base64; exit 1", secrets=["hunter22"])
    assert failed.error == "the command ended with status 1\ntoken=[secret]"
    assert "hunter22" not in lab.heard[-1].stderr
    assert lab.said.startswith("[secret]")


async def test_limits_hold(lab: Lab):
    limits = {"memory-mib": 512, "processes": 50, "open-files": 64, "file-size-mib": 1, "cpu-seconds": 100}
    policy = {"limits": limits, "tenants": {"*": {"allow": ["*"]}}}
    assert await lab.sh("ulimit -v; ulimit -n; ulimit -t; ulimit -c; cat /proc/self/limits", policy=policy) is None
    assert lab.said.split()[:4] == [str(512 << 10), "64", "100", "0"]
    assert any(line.split()[:4] == ["Max", "processes", "50", "50"] for line in lab.said.splitlines())
    large = await lab.sh("exec head -c 2000000 /dev/zero > large", policy=policy)
    assert large.error == "the command was killed by SIGXFSZ: it wrote a larger file than it may"


@with_and_without_walls
@pytest.mark.parametrize("mood", ["heeding", "deaf"])
async def test_a_cancelled_command_gets_sigterm_then_sigkill_and_so_does_everybody_it_left_behind(
    lab: Lab, walls: bool, mood: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(attendant_module, "GRACE", GRACE if mood == "deaf" else timedelta(seconds=20))
    trap = 'trap "" TERM' if mood == "deaf" else 'trap "echo cleaned up; exit 1" TERM'
    marker = f"16180.{OWN}"
    daemon = f"setsid sh -c '{trap}; setsid sleep {marker} & wait' &"
    started = asyncio.ensure_future(lab.sh(f"{trap}; ({daemon}); sleep {marker} & wait; wait"))
    await eventually(lambda: started.done() or len(living(f"sleep\0{marker}")) == 2)
    (folder,) = lab.folders._place.iterdir()
    started.cancel()
    with pytest.raises(asyncio.CancelledError, match="cleaned up" if mood == "heeding" else None):
        await started
    assert not living(marker)
    assert not folder.exists()
    assert ("cleaned up" in lab.heard[-1].stdout) == (mood == "heeding")


async def test_a_command_that_is_cancelled_before_anybody_knows_that_it_runs_ends_like_any_other(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    marker, known, start = f"26457.{OWN}", asyncio.Event(), lab.nursery.start

    async def slow_to_say(command: Command) -> Child:
        child = await start(command)
        await known.wait()
        return child

    monkeypatch.setattr(lab.nursery, "start", slow_to_say)
    started = asyncio.ensure_future(lab.sh(f'trap "echo cleaned up; exit 1" TERM; sleep {marker} & wait'))
    await eventually(lambda: living(f"sleep\0{marker}"))
    started.cancel()
    await asyncio.sleep(0)
    known.set()
    with pytest.raises(asyncio.CancelledError, match="cleaned up"):
        await started
    assert not living(marker)


@pytest.mark.parametrize("delivery", [msgspec.UNSET, "atMostOnce"])
async def test_a_command_whose_guard_was_killed_before_it_said_anything_may_have_begun(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, delivery: Any
):
    async def forsaken(command: Command) -> Child:
        raise Forsaken("its guard ended before it began")

    monkeypatch.setattr(lab.nursery, "start", forsaken)
    answer = await lab.sh("exit 0")
    assert isinstance(answer, Failure)
    assert answer.ending is Ending.RELEASED
    spec = Spec(handler=CommandHandler(("/bin/true",)), delivery=delivery, max_retries=0)
    outcome = outcome_of(answer, spec, 0, 0.0)
    assert outcome.ending is (Ending.UNKNOWN if delivery else Ending.RELEASED)


@with_and_without_walls
async def test_who_is_left_when_a_command_ends_ends_with_it(lab: Lab, walls: bool):
    marker = f"14142.{OWN}"
    assert await lab.sh(f"(setsid sh -c 'trap \"\" TERM; sleep {marker} & exec sleep {marker}' &); exit 0") is None
    assert not living(marker)


@with_and_without_walls
def test_a_stopped_supervisor_leaves_no_command_running_past_its_lease(walls: bool):
    marker = f"17320.{OWN}"
    script = f"trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep {marker} & wait' &); sleep {marker} & wait"
    with as_process(["/bin/sh", "-c", script], walls=walls) as process:
        soon(lambda: len(living(f"sleep\0{marker}")) == 2)
        process.send_signal(signal.SIGUSR1)
        soon(lambda: not living(f"sleep\0{marker}"))
        process.send_signal(signal.SIGCONT)
        assert "this worker stood still for its whole lease" in process.communicate()[0]


def test_a_killed_supervisor_leaves_no_command():
    marker = f"22360.{OWN}"
    with as_process(["/bin/sh", "-c", f"(setsid sleep {marker} &); sleep {marker} & wait"], walls=True) as process:
        soon(lambda: len(living(f"sleep\0{marker}")) == 2)
        process.kill()
        soon(lambda: not living(f"sleep\0{marker}"))


async def test_where_the_kernel_refuses_a_wall_the_others_stand_and_it_is_said(monkeypatch: pytest.MonkeyPatch):
    tried: list[set[str]] = []

    async def refuse(nursery: object, folders: object, account: object, parts: set[str]) -> bool:
        tried.append(set(parts))
        for part in ("net", "mount"):
            if part in parts:
                raise CannotStart("no", 1, part)
        return True

    monkeypatch.setattr(isolation_module, "_try", refuse)
    found = await probe(None, None)
    assert found.other_user
    assert found.parts == {"pid", "ipc", "uts"}
    assert found.refused == dict.fromkeys(["net", "mount", "proc", "read-only"], "Operation not permitted")
    assert tried[0] == set(PARTS) - {"user"}
    assert found.summary == "namespaces: pid, ipc, uts; refused: mount, net, proc, read-only"


async def test_where_nobody_else_can_be_had_it_is_known(monkeypatch: pytest.MonkeyPatch):
    async def refuse(nursery: object, folders: object, account: tuple[int | None, ...], parts: set[str]) -> bool:
        if account[0] is not None:
            raise CannotStart("no", 1, "account")
        return True

    monkeypatch.setattr(isolation_module, "_try", refuse)
    found = await probe(None, None)
    assert not found.other_user
    assert found.refused == {"account": "Operation not permitted"}


def test_commands_never_run_as_root_or_as_nobody_who_exists():
    for name in ("root", "nobody-of-that-name"):
        with pytest.raises(FoliotError, match=name):
            account_of(name, 1)


def test_no_two_tenants_have_the_same_user_id():
    assert account_of(None, IDS - 1).uid == FIRST_ID + IDS - 1 < 100_000
    with pytest.raises(FoliotError, match="this one comes later"):
        account_of(None, IDS)


def test_workers_that_start_together_do_not_remove_each_others_folders(tmp_path: Path):
    def work(_: int) -> bool:
        with open_folders(tmp_path) as folders:
            return folders.make(None, None).exists()

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(100)))
    assert list(tmp_path.iterdir()) == []


def test_folders_are_removed_however_deep_and_after_a_worker_that_was_killed(tmp_path: Path):
    left = tmp_path / "foliot-commands-left"
    left.mkdir()
    (left / "file").touch()
    with open_folders(tmp_path) as held:
        assert not left.exists(), "its worker is gone"
        with open_folders(tmp_path):
            assert held._place.exists(), "another worker lives"
        folder = held.make(None, None)
        (folder / "link").symlink_to(tmp_path)
        place = os.open(folder, os.O_RDONLY)
        for _ in range(1_100):  # deeper than a stack, and longer than a path may be
            os.mkdir("folder", dir_fd=place)
            inner = os.open("folder", os.O_RDONLY, dir_fd=place)
            os.close(os.open("file", os.O_CREAT, dir_fd=inner))
            os.close(place)
            place = inner
        os.close(place)
        remove(folder)
        assert not folder.exists()
    assert list(tmp_path.iterdir()) == []
