"""The Python of the README and of some guides runs, against a whole Foliot, as a reader would run it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from docs.pages import blocks
from kit.launching import eventually


def _is_client(text: str) -> bool:
    return "Foliot(" in text and "@worker" not in text


@asynccontextmanager
async def _up(folder: Path, dsn: str) -> AsyncIterator[dict[str, str]]:
    """`foliot up shop:worker` in `folder`, on this test's database; gives the environment for clients."""
    environment = {
        **os.environ,
        "FOLIOT_HOME": str(folder / ".foliot"),
        "FOLIOT_DATABASE_URL": dsn,
        "FOLIOT_PORT": "0",
    }
    environment.pop("FOLIOT_URL", None)
    environment.pop("FOLIOT_KEY", None)
    with (folder / "up.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "foliot", "up", "shop:worker", cwd=folder, env=environment, stderr=log
        )
    try:
        await asyncio.to_thread(eventually, lambda: _said(folder, process, "Foliot is up."), 50)
        if "every=" in (folder / "shop.py").read_text():
            await asyncio.to_thread(eventually, lambda: _said(folder, process, "declared"))
        yield environment
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


def _said(folder: Path, process: asyncio.subprocess.Process, words: str) -> bool:
    log = (folder / "up.log").read_text()
    assert process.returncode is None, log
    return words in log


_PAGES = (("README.md",), ("docs/guides/functions.md", "docs/guides/clients.md"), ("docs/guides/transactions.md",))
"""Those that stand together share an application, and a start of Foliot, which takes a while."""


@pytest.mark.parametrize("pages", _PAGES, ids=str)
async def test_python_of_the_pages_runs(pages, dsn, tmp_path):
    texts = [block.text for page in pages for block in blocks("python", page)]
    (tmp_path / "shop.py").write_text("\n\n".join(text for text in texts if not _is_client(text)))
    async with _up(tmp_path, dsn) as environment:
        for number, text in enumerate(filter(_is_client, texts)):
            script = tmp_path / f"client_{number}.py"
            script.write_text(text)
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, script],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=40,
                check=False,
            )
            assert done.returncode == 0, done.stderr + (tmp_path / "up.log").read_text()
            _check_comments(text, done.stdout)
    log = (tmp_path / "up.log").read_text()
    assert "Traceback" not in log, log
    assert "refused" not in log, log


def _check_comments(text: str, output: str) -> None:
    """A comment behind `print(…)` says what it prints."""
    said = [line.partition(")  # ")[2] for line in text.splitlines() if line.strip().startswith("print(")]
    for comment in filter(None, said):
        assert comment in output
