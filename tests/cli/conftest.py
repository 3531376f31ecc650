"""`foliot` as people type it, against a Foliot on a socket."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner, Result

from foliot.cli.main import main
from sdk.serving import Served, served
from worker.crew import Crew
from world import World

# What workers log beside a command is not what the command prints, which the runner catches by swapping sys.stdout.
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.__stderr__))


class Shell:
    """Types commands; the loop, and with it the server, goes on meanwhile."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = {"COLUMNS": "80", **environment}

    async def __call__(self, *words: str, code: int = 0, **environment: str) -> str:
        """What the command printed; it must exit with `code`."""
        result = await self.result(*words, **environment)
        assert result.exit_code == code, result.output
        return result.output

    async def json(self, *words: str, code: int = 0) -> Any:
        result = await self.result(*words, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    async def result(self, *words: str, **environment: str) -> Result:
        result = await asyncio.wait_for(asyncio.to_thread(type_, words, {**self.environment, **environment}), 30)
        # Everything that can go wrong is said in words: no command ends in a traceback.
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result


def type_(words: tuple[str, ...], environment: dict[str, str]) -> Result:
    cleared = dict.fromkeys(("FOLIOT_URL", "FOLIOT_KEY", "FOLIOT_HOME", "FOLIOT_DATABASE_URL", "FOLIOT_PORT"))
    return CliRunner().invoke(main, list(words), env={**cleared, **environment})


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
async def foliot(world: World) -> AsyncIterator[Served]:
    async with served(world) as found:
        yield found


@pytest.fixture
def shell(foliot: Served) -> Shell:
    return Shell({"FOLIOT_URL": foliot.url, "FOLIOT_KEY": foliot.key})


@pytest.fixture
def lost() -> Shell:
    """A shell where nothing is configured."""
    return Shell({})


@pytest.fixture
def crew(dsn: str) -> Crew:
    return Crew(dsn)
