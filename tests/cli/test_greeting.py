"""What `foliot up` says first is what the README shows."""

import sys
from pathlib import Path

import pytest

from docs.pages import blocks
from foliot.cli.greeting import _greeting
from foliot.domain.egress import DEVELOPING
from foliot.kit.settings import Settings


def test_the_readme_shows_the_greeting(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FOLIOT_HOME", raising=False)
    monkeypatch.setattr(sys, "argv", [".venv/bin/foliot", "up"])
    shown = [block.text for block in blocks("text", "README.md") if "Foliot is up." in block.text]
    settings = Settings.read({})._replace(http_allow=DEVELOPING)
    assert shown == [_greeting(settings, "http://127.0.0.1:7070").lstrip("\n")]
