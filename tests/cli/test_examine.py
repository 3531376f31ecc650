"""What the doctor says of the machine."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from foliot.cli.examine_machine import address, disk, home, trail
from foliot.kit.settings import Settings


@pytest.mark.parametrize(("free", "word"), [(1 << 20, "BAD"), (500 << 20, "WARN"), (50 << 30, "ok ")])
def test_a_disk_that_fills_up_is_told_before_it_is_full(monkeypatch: pytest.MonkeyPatch, free: int, word: str):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    found = disk(Settings.read({"FOLIOT_HOME": "not/there/yet"}))
    assert found.word == word
    assert bool(found.hint) == (word != "ok ")
    elsewhere = disk(Settings.read({"FOLIOT_DATABASE_URL": "postgresql://db.example/foliot"}))
    assert elsewhere.word == "ok "


def test_who_else_can_reach_the_api_or_read_a_key(folder: Path):
    assert [address(Settings.read({"FOLIOT_HOST": host})).word for host in ("", "::1", "localhost")] == ["ok "] * 3
    for host in ("0.0.0.0", "10.0.0.7", "::", "api.example"):
        found = address(Settings.read({"FOLIOT_HOST": host}))
        assert (found.word, "TLS" in found.hint) == ("WARN", True)
    elsewhere = folder / "elsewhere.key"
    settings = Settings.read({"FOLIOT_HOME": str(folder), "FOLIOT_MASTER_KEY_FILE": str(elsewhere)})
    for file in (folder / "client.json", folder / "master.key", folder / "audit.key", elsewhere):
        file.touch(mode=0o600)
        assert home(settings).ok
        file.chmod(0o640)
        assert home(settings).hint == f"chmod 600 {file}"
        file.chmod(0o600)


def test_whether_the_trail_is_signed(folder: Path):
    assert "not signed" in trail(Settings.read({})).detail
    (folder / "audit.key").write_text("x" * 64)
    assert "signed into" in trail(Settings.read({"FOLIOT_HOME": str(folder)})).detail
    (folder / "short.key").write_text("short")
    short = {"FOLIOT_OBJECTS": str(folder / "objects"), "FOLIOT_AUDIT_KEY_FILE": str(folder / "short.key")}
    assert trail(Settings.read(short)).word == "BAD"
