import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from foliot.kit.postgres import leftover, process
from foliot.kit.postgres.process import Adopted, look_at

DATA = Path("/srv/home/postgres/data")


def seen(command: str, program: str = "postgres") -> process.Process:
    return process.Process(pid=2**30, uid=0, started="1", zombie=False, program=program, command=command)


@pytest.fixture
def sleeper():
    with subprocess.Popen(["cat", "-u", "-", "--", "a b"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as sleeper:
        yield sleeper


@pytest.mark.skipif(not Path("/bin/ps").exists(), reason="there is no ps on this machine")
def test_proc_and_ps_see_the_same(sleeper, monkeypatch):
    by_proc = look_at(sleeper.pid)
    monkeypatch.setattr(process, "PROC", Path("/no/proc"))
    by_ps = look_at(sleeper.pid)
    assert replace(by_proc, started="") == replace(by_ps, started="")
    assert by_ps == look_at(sleeper.pid)
    assert by_proc.program == "cat"


@pytest.mark.parametrize("place", [process.PROC, Path("/no/proc")])
def test_a_zombie_is_seen_as_one_and_the_dead_not_at_all(place, monkeypatch):
    monkeypatch.setattr(process, "PROC", place)
    zombie = subprocess.Popen(["true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    assert look_at(zombie.pid).zombie
    zombie.wait()
    assert look_at(zombie.pid) is None


@pytest.mark.parametrize(
    ("command", "program", "expected"),
    [
        (f"/opt/bin/postgres -D {DATA} -c fsync=on", "postgres", True),
        (f"/opt/bin/postgres -D {DATA}", "postgres", True),
        (f"/opt/bin/postgres -D {DATA}.new", "postgres", False),
        (f"/opt/bin/postgres -D /elsewhere{DATA}", "postgres", False),
        ("postgres: checkpointer", "postgres: checkpointer", False),
        (f"vim -D {DATA}", "vim", False),
    ],
)
def test_only_a_postmaster_with_our_data_serves_it(command, program, expected):
    assert seen(command, program).serves(DATA) is expected


def test_a_pid_that_went_to_someone_else_is_neither_watched_nor_signalled(sleeper):
    adopted = Adopted(replace(look_at(sleeper.pid), started="earlier"))
    assert adopted.poll() == 1
    adopted.send_signal(9)
    assert sleeper.poll() is None


def test_an_adopted_child_of_ours_is_reaped():
    child = subprocess.Popen(["sh", "-c", "read line; exit 7"], stdin=subprocess.PIPE)
    adopted = Adopted(look_at(child.pid))
    assert adopted.poll() is None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert adopted.poll() == 7
    assert look_at(child.pid) is None
    child.returncode = 7  # it was reaped behind the back of Popen


def test_a_memory_segment_is_told_by_key_and_id(monkeypatch, tmp_path):
    (tmp_path / "sysvipc").mkdir()
    (tmp_path / "sysvipc/shm").write_text(
        "       key      shmid perms size  cpid  lpid nattch   uid   gid  cuid  cgid atime dtime ctime rss swap\n"
        "  -1234567          7  600   56     1     2      3   101   104   101   104     0     0     0   0    0\n"
    )
    monkeypatch.setattr(leftover, "PROC", tmp_path)
    unsigned = 2**64 - 1234567
    assert leftover._attached((unsigned, 7))
    assert not leftover._attached((unsigned, 8))
    assert not leftover._attached((1234567, 7))
