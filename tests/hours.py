"""Tests at the worst moment of the day, when an hour has just begun: `make hours`.

Schedules fire at full hours unless a test says otherwise. One that relies on it that none does meanwhile falls over
about once a day, and not where it was written.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import pytest

from chaos.ground import Clocks

CLOCK: Final = "CHAOS_CLOCK"
"""Where the shim finds by how many seconds a process's clock is ahead."""
HOUR: Final = 3600


def shifted() -> dict[str, str]:
    """What the server finds in its environment, so that its clock is that of the tests."""
    return {name: os.environ[name] for name in ("LD_PRELOAD", CLOCK)} if CLOCK in os.environ else {}


@pytest.fixture(autouse=True)
def _as_an_hour_begins(template: str) -> None:
    """After `template`, or what tests copy would have been made in the future of most of them."""
    with Path(os.environ[CLOCK]).open("r+b", buffering=0) as clock:
        ahead = int.from_bytes(clock.read(8), "little", signed=True)
        left = -(time.time() - ahead) % HOUR
        os.pwrite(clock.fileno(), math.ceil(left).to_bytes(8, "little", signed=True), 0)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)  # the server has an account of its own
        environment = {**os.environ, **Clocks(place).environment("tests")}
        command = [sys.executable, "-m", "pytest", "-p", "hours", "-n", "0", *sys.argv[1:]]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
