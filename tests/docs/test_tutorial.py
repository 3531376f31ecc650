"""The tutorial does what it says, line by line: against a whole Foliot, started as it says."""

import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.pages import ROOT, blocks
from kit.launching import eventually

PAGE = "docs/tutorial.md"
START = "make up APP=shop:worker"
_MADE_UP = re.compile(r"\b(?:job|run|op|key)_[0-9a-z]{13}\b|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d")
_WORD = re.compile(r"[A-Za-z_]{4,}|\b\d\b")


class Line(NamedTuple):
    """A command, and what is shown below it."""

    command: str
    shown: str

    def is_said_in(self, output: str) -> bool:
        """Whether the words of what is shown come in this order; how they are laid out is the terminal's affair."""
        said = iter(_WORD.findall(_MADE_UP.sub("", output)))
        return all(word in said for word in _WORD.findall(_MADE_UP.sub("", self.shown)))


def lines() -> Iterator[Line]:
    for block in blocks("console", PAGE):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield Line(command, shown)


@pytest.fixture
def clone(tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like a clone in which `make` has prepared everything; the database is the test's."""
    application, *_ = blocks("python", PAGE)
    (tmp_path / "shop.py").write_text(application.text)
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    for name in ("FOLIOT_URL", "FOLIOT_KEY", "FOLIOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FOLIOT_DATABASE_URL", dsn)
    monkeypatch.setenv("FOLIOT_PORT", "0")
    return tmp_path


async def test_the_tutorial_does_what_it_says(clone: Path):
    commands = list(lines())
    assert commands[0].command == START
    with (clone / "up.log").open("wb") as log:
        # Its tools are there: to prepare them is the one thing that is not done again.
        process = await asyncio.create_subprocess_exec(
            *shlex.split(START), "TOOLS=", cwd=clone, stderr=log, stdout=log, start_new_session=True
        )
    try:
        await asyncio.to_thread(eventually, lambda: "declared" in _log(clone, process), 60)
        await asyncio.to_thread(_follow, clone, commands[1:])
    finally:
        os.killpg(process.pid, signal.SIGINT)
        await asyncio.wait_for(process.wait(), 60)
    assert "Foliot is up." in (clone / "up.log").read_text()


def _log(clone: Path, process: asyncio.subprocess.Process) -> str:
    log = (clone / "up.log").read_text()
    assert process.returncode is None, log
    return log


def _follow(clone: Path, commands: list[Line]) -> None:
    activate, *others = commands
    assert activate.command.startswith("source")
    client = next(block.text for block in blocks("python", PAGE) if "Foliot()" in block.text)
    for line in others:
        if line.command.startswith("echo"):
            _check_client(clone, client)
        _do(clone, f"{activate.command} && {line.command}", line)


def _do(clone: Path, command: str, line: Line) -> None:
    """Once, or, if what is shown needs a while to come true, until it has."""
    end = time.monotonic() + 60
    while not line.is_said_in(said := _said(clone, command)):
        assert time.monotonic() < end, f"$ {line.command}\n{said}\ninstead of\n{line.shown}"


def _said(clone: Path, command: str) -> str:
    done = subprocess.run(["bash", "-c", command], cwd=clone, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def _check_client(clone: Path, text: str) -> None:
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    for comment in re.findall(r"print\(.*\)  # (.*)$", text, re.MULTILINE):
        assert comment in done.stdout
