import json
import os
import stat
from pathlib import Path

import pytest

from foliot.kit.postgres import PostgresError, PostgresServer, find_binaries
from foliot.kit.postgres.place import settle
from kit.launching import ask, eventually, fresh_home, spawn_launcher

# Gets half-way, says so, and waits for ever.
SLOW_INITDB = """#!/bin/sh
[ "$1" = --version ] && exit 0
mkdir -p "$2/base" && echo 18 > "$2/PG_VERSION" && echo "$2" > {trace}
read end < {gate}
"""


@pytest.fixture
def home():
    with fresh_home() as home:
        yield home


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")}


def make_folder(home: Path) -> Path:
    home.mkdir()
    folder, _ = settle(home, None, print)
    return folder


async def test_the_remains_of_an_interrupted_initdb_are_not_taken_for_a_cluster(home):
    half = make_folder(home) / "data.new-0123abcd"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    with PostgresServer(home) as server:
        assert await ask(server, "SELECT 1") == 1
    assert not half.exists()


def pretend_initdb(folder: Path, script: str) -> Path:
    """Make a folder of server programs whose initdb is `script`."""
    folder.mkdir()
    for program in ("postgres", "psql", "pg_isready"):
        (folder / program).symlink_to(find_binaries().bin / program)
    (folder / "initdb").write_text(script)
    (folder / "initdb").chmod(0o755)
    return folder


def die_in_initdb(home: Path) -> Path:
    """Kill a launcher in the middle of initdb; return the folder that was being filled."""
    trace, gate = home.parent / "trace", home.parent / "gate"
    trace.touch()
    os.mkfifo(gate)
    for path in (trace, gate):
        path.chmod(0o666)
    programs = pretend_initdb(home.parent / "bin", SLOW_INITDB.format(trace=trace, gate=gate))
    with spawn_launcher(home, programs) as process:
        eventually(lambda: trace.read_text().endswith("\n"))
        process.kill()
    gate.write_text("end\n")
    return Path(trace.read_text().strip())


async def test_a_launcher_killed_during_initdb_leaves_nothing_that_counts(home):
    half = die_in_initdb(home)
    assert (half / "PG_VERSION").exists()
    assert not (home / "postgres/data").exists()
    with PostgresServer(home) as server:
        assert await ask(server, "SELECT 1") == 1
    assert not half.exists()


async def test_a_failed_initdb_says_why_and_leaves_nothing(home):
    script = '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho no room left >&2; exit 1\n'
    programs = find_binaries(pretend_initdb(home.parent / "bin", script))
    with pytest.raises(PostgresError, match=r"(?s)initdb could not.*no room left"):
        PostgresServer(home, binaries=programs).start()
    assert list((home / "postgres").iterdir()) == []


async def test_data_of_another_major_version_is_refused_untouched(home):
    with PostgresServer(home):
        pass
    data = home / "postgres/data"
    (data / "PG_VERSION").write_text("14\n")
    before = contents(data)
    with pytest.raises(PostgresError, match=r"(?s)made by PostgreSQL '14'.*Nothing was touched.*pg_upgrade"):
        PostgresServer(home).start()
    assert contents(data) == before


async def test_a_data_folder_that_is_no_cluster_is_refused(home):
    (make_folder(home) / "data").mkdir()
    with pytest.raises(PostgresError, match="no readable cluster"):
        PostgresServer(home).start()


async def test_the_password_is_random_and_private(home):
    with PostgresServer(home), fresh_home() as other, PostgresServer(other):
        files = [folder / "postgres.json" for folder in (home, other)]
        assert len({json.loads(file.read_text())["password"] for file in files}) == 2
        for file in files:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert file.stat().st_uid == os.geteuid()
        assert not (home / "postgres.json.new").exists()


async def test_a_lost_password_file_says_what_to_do(home):
    with PostgresServer(home):
        pass
    (home / "postgres.json").unlink()
    with pytest.raises(PostgresError, match="restore that file"):
        PostgresServer(home).start()


async def test_a_wrong_password_file_says_what_to_do(home):
    with PostgresServer(home):
        pass
    (home / "postgres.json").write_text('{"password": "another"}')
    with pytest.raises(PostgresError, match=r"(?s)password authentication failed.*put back"):
        PostgresServer(home).start()


async def test_a_link_into_nowhere_is_not_taken_for_a_fresh_start(home):
    home.mkdir()
    (home / "postgres").symlink_to(home.parent / "unmounted")
    with pytest.raises(PostgresError, match="which is gone"):
        PostgresServer(home).start()


async def test_a_home_that_cannot_be_made_is_a_clear_error(home):
    home.parent.joinpath("file").touch()
    with pytest.raises(PostgresError, match="cannot be started"):
        PostgresServer(home.parent / "file/home").start()


@pytest.mark.parametrize("major", ["15", "16"])
async def test_older_servers_are_good_enough(home, major):
    others = [*find_binaries().bin.parents[1].glob("pginstall*/bin"), Path(f"/usr/lib/postgresql/{major}/bin")]
    found = [binaries for binaries in map(find_binaries, filter(Path.exists, others)) if str(binaries.major) == major]
    if not found:
        pytest.skip(f"there is no PostgreSQL {major} on this machine")
    with PostgresServer(home, binaries=found[0]) as server:
        assert (await ask(server, "SHOW server_version")).startswith(major)
        assert await ask(server, "SHOW data_checksums") == "on"
        assert await ask(server, "SELECT 'a' < 'B'") is False
