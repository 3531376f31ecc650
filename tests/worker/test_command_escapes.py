"""Every way out of a command that is known to be tried: none leads anywhere."""

import asyncio
import json
import os
import pwd
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foliot.domain.commands import SEARCHED
from foliot.domain.outcome import Returned
from foliot.worker.commands import attendant as attendant_module
from foliot.worker.commands.executor import find_program
from foliot.worker.commands.isolation import FIRST_ID
from kit.launching import needs_root
from worker.lab import (
    OWN,
    PLANTED,
    TENANT,
    Lab,
    as_process,
    living,
    open_lab,
    skip_unless_somebody_can_be_ordinary,
)
from worker.making import eventually

PYTHON = find_program("python3", SEARCHED)
BURGLAR = (PYTHON, "-I", "-c", Path(__file__).with_name("burglar.py").read_text())
EVERYWHERE = (
    "/etc/passwd",
    "/etc/foliot-was-here",
    "/usr/bin/foliot-was-here",
    "/foliot-was-here",
    "/var/foliot-was-here",
)
BOMB = f"""
import os, signal  # {OWN}
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        os.fork() or os.setsid()
    except OSError:
        pass
"""
MOST_BOMBS = 20
MARKER = f"31415.{OWN}"
GROUP = 4
METADATA = ["169.254.169.254", 80]
NOTHING = {
    name: [] for name in ("read", "written", "environment", "looked_into", "attached", "signalled", "descriptors")
}
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's"),
    pytest.mark.skipif(not PYTHON, reason="the burglar needs a Python that every user may run"),
]
with_and_without_walls = pytest.mark.parametrize("walls", [True, False], ids=["walls", "bare"])


@pytest.fixture
async def lab(walls: bool) -> AsyncIterator[Lab]:
    before = os.getgroups()
    with suppress(PermissionError):
        os.setgroups([GROUP])  # what the worker is a member of, its commands are not
    try:
        async with open_lab(walls=walls) as opened:
            yield opened
    finally:
        with suppress(PermissionError):
            os.setgroups(before)


@pytest.fixture
def house() -> Iterator[Path]:
    """Where Foliot keeps what a command must not know; everybody could read it, were it not hidden."""
    with tempfile.TemporaryDirectory(dir="/var/lib" if os.access("/var/lib", os.W_OK) else None) as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "client.json").write_text(PLANTED)
        yield folder


@pytest.fixture
def common() -> Iterator[Path]:
    """Where everybody of the machine may write, and no command finds its own folder instead."""
    with tempfile.TemporaryDirectory(dir="/var/lib" if os.access("/var/lib", os.W_OK) else None) as made:
        Path(made).chmod(0o777)
        yield Path(made)


@contextmanager
def unix_socket(place: str | None = None) -> Iterator[str]:
    """Where a database might listen, or an engine of containers: in a folder that everybody may enter."""
    with tempfile.TemporaryDirectory(dir=place) as made, closing(socket.socket(socket.AF_UNIX)) as listener:
        Path(made).chmod(0o755)
        path = Path(made) / ".s.PGSQL.5432"
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen()
        yield str(path)


def payload(house: Path, **fields: Any) -> dict[str, Any]:
    nothing: dict[str, Any] = {"pids": [], "addresses": [], "sockets": []}
    return {"planted": PLANTED, "files": [str(house / "client.json")], "places": EVERYWHERE, **nothing, **fields}


@needs_root
@with_and_without_walls
async def test_as_another_user_a_command_gets_hold_of_nothing(
    lab: Lab, walls: bool, house: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FOLIOT_DATABASE_URL", PLANTED)
    os.set_inheritable(leak := os.open(house / "client.json", os.O_RDONLY), True)
    os.chmod(house, 0o700)  # noqa: PTH101 - so it is as a rule, walls or not
    relatives = [os.getpid(), os.getppid(), 1]
    asked = payload(house, pids=relatives)
    try:
        policy = {"account": "nobody", "tenants": {"*": {"allow": ["*"]}}}
        assert isinstance(await lab.run(*BURGLAR, payload=asked, policy=policy), Returned)
    finally:
        os.close(leak)
    found = json.loads(lab.said)
    nobody = pwd.getpwnam("nobody")
    assert found["ids"] == [nobody.pw_uid, nobody.pw_gid, []]
    assert found["status"] == {"NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapAmb": "0" * 16}
    assert not found["root"]
    assert {name: found[name] for name in NOTHING} == {**NOTHING, "signalled": [1] if walls else []}, (
        "1 is its own init"
    )
    assert found["undone"] == []


@needs_root
@pytest.mark.parametrize(
    ("walls", "allowed"), [(True, False), (True, True), (False, False)], ids=["walls", "writable", "bare"]
)
async def test_behind_walls_a_command_writes_nowhere_unless_the_operator_says_so(
    lab: Lab, walls: bool, allowed: bool, house: Path, common: Path
):
    """Where anybody may write: elsewhere it is not this wall that keeps a command out."""
    place = str(common / "foliot-was-here")
    policy = {"writable": [str(common)] if allowed else [], "tenants": {"*": {"allow": ["*"]}}}
    assert isinstance(await lab.run(*BURGLAR, payload=payload(house, places=[place]), policy=policy), Returned)
    assert json.loads(lab.said)["written"] == ([] if walls and not allowed else [place])


@needs_root
@pytest.mark.parametrize("walls", [True])
async def test_behind_walls_there_is_no_network_no_socket_and_nothing_that_is_hidden_unless_the_operator_says_so(
    lab: Lab, house: Path
):
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as listener,
        unix_socket() as path,
        unix_socket(str(house.parent)) as engine,  # one that is hidden by its own name, as those of engines are
    ):
        door = list(listener.getsockname())
        asked = payload(house, addresses=[door, METADATA], sockets=[path, engine])
        hidden = [str(house), engine]
        assert isinstance(await lab.run(*BURGLAR, payload=asked, hidden=hidden), Returned)
        shut = json.loads(lab.said)
        shown = [str(house), str(Path(path).parent), engine]
        opened = {"network": True, "readable": shown, "tenants": {"*": {"allow": ["*"]}}}
        assert isinstance(await lab.run(*BURGLAR, payload=asked, hidden=hidden, policy=opened), Returned)
        open_ = json.loads(lab.said)
    assert (shut["reached"], shut["unix"], shut["read"]) == ([], [], [])
    assert (open_["reached"][:1], open_["unix"], open_["read"]) == ([door], [path, engine], asked["files"])


@needs_root
@with_and_without_walls
async def test_a_tenant_cannot_read_or_stop_what_another_one_runs(lab: Lab, walls: bool):
    """The first shows its folder while the second looks for it."""
    started = await _running(lab, f'echo mine > "$TMPDIR/mine"; exec sleep {MARKER}', ("growth", TENANT + 1))
    try:
        (folder,) = lab.folders._place.iterdir()
        await eventually((folder / "mine").exists)  # the shell has the marker before it has written anything
        assert (folder / "mine").stat().st_uid == folder.stat().st_uid == FIRST_ID + TENANT + 1
        (victim, *_) = living(MARKER)
        asked = payload(folder, files=[str(folder / "mine")], pids=[victim], places=[str(folder / "mine")])
        assert isinstance(await lab.run(*BURGLAR, payload=asked, tenant=("sales", TENANT + 2)), Returned)
        found = json.loads(lab.said)
        assert found["ids"][0] == FIRST_ID + TENANT + 2
        assert {name: found[name] for name in NOTHING} == NOTHING
    finally:
        started.cancel()
        await asyncio.wait([started])
    assert not living(MARKER)


@needs_root
@with_and_without_walls
async def test_a_fork_bomb_stays_within_its_limit_and_goes_with_its_attempt(
    lab: Lab, walls: bool, monkeypatch: pytest.MonkeyPatch
):
    """Each of them forks again and again, into sessions of their own: whoever is killed is replaced at once."""
    few = {"limits": {"processes": MOST_BOMBS}, "tenants": {"*": {"allow": ["*"]}}}
    started = asyncio.ensure_future(lab.run(PYTHON, "-I", "-c", BOMB, policy=few))
    await eventually(lambda: started.done() or len(living(BOMB)) >= MOST_BOMBS - 1)
    assert len(living(BOMB)) <= MOST_BOMBS
    monkeypatch.setattr(attendant_module, "GRACE", timedelta(0))
    started.cancel()
    await asyncio.wait([started])
    assert not living(BOMB)
    assert await lab.sh("exit 0") is None, "the worker is well"


@with_and_without_walls
def test_as_the_workers_own_user_a_command_finds_no_credentials(walls: bool, house: Path):
    """Without walls it may do what the user may, but the secrets of Foliot's own processes stay theirs."""
    skip_unless_somebody_can_be_ordinary()
    asked = payload(house, files=[], sockets=[])
    with as_process(BURGLAR, asked, walls=walls, ordinary=True) as process:
        told = json.loads(process.communicate()[0])
    if walls and "pid" not in told["parts"]:
        pytest.skip("the kernel gives ordinary users no namespaces here")
    assert told["error"] is None
    found = json.loads(told["said"])
    assert bool(told["parts"]) == walls
    assert found["ids"][0] == (pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.getuid())
    assert found["status"] == {"NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapAmb": "0" * 16}
    kept = ("written", "environment", "looked_into", "attached", "descriptors", "undone")
    assert {name: found[name] for name in kept} == {name: [] for name in kept}
    assert not found["root"]


@needs_root
@with_and_without_walls
def test_a_command_has_no_terminal_to_type_into(walls: bool):
    """Who shares the terminal of its worker can write commands there as if the operator had (CVE-2017-5226)."""
    with as_process(["/bin/sh", "-c", "(: < /dev/tty) && echo reached"], walls=walls, terminal=True) as process:
        told = json.loads(process.communicate()[0])
    assert told["terminal"], "its worker has one"
    assert told["said"] == ""


async def _running(lab: Lab, script: str, tenant: tuple[str, int]) -> "asyncio.Future[Any]":
    started = asyncio.ensure_future(lab.sh(script, tenant=tenant))
    await eventually(lambda: started.done() or living(MARKER))
    assert not started.done(), started.result()
    return started
