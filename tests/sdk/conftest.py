"""Foliot on a socket, and an environment that says nothing about it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sdk.serving import Served, served
from worker.crew import Crew
from world import World


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of whoever runs the tests reach them."""
    for name in ("FOLIOT_URL", "FOLIOT_KEY", "FOLIOT_HOME", "FOLIOT_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def foliot(world: World) -> AsyncIterator[Served]:
    async with served(world) as found:
        yield found


@pytest.fixture
def crew(dsn: str) -> Crew:
    return Crew(dsn)
