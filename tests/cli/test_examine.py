"""What the doctor says of the machine."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from foliot.cli.examine_machine import disk, trail
from foliot.kit.settings import Settings


@pytest.mark.parametrize(("free", "word"), [(1 << 20, "BAD"), (500 << 20, "WARN"), (50 << 30, "ok ")])
def test_a_disk_that_fills_up_is_told_before_it_is_full(monkeypatch: pytest.MonkeyPatch, free: int, word: str):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    found = disk(Settings.read({"FOLIOT_HOME": "not/there/yet"}))
    assert found.word == word
    assert bool(found.hint) == (word != "ok ")
    elsewhere = disk(Settings.read({"FOLIOT_DATABASE_URL": "postgresql://db.example/foliot"}))
    assert elsewhere.word == "ok "


def test_whether_the_trail_is_signed(folder: Path):
    assert "not signed" in trail(Settings.read({})).detail
    (folder / "audit.key").write_text("x" * 64)
    assert "signed into" in trail(Settings.read({"FOLIOT_HOME": str(folder)})).detail
    (folder / "short.key").write_text("short")
    short = {"FOLIOT_OBJECTS": str(folder / "objects"), "FOLIOT_AUDIT_KEY_FILE": str(folder / "short.key")}
    assert trail(Settings.read(short)).word == "BAD"
