"""What stands above every published proof: which commit was tried, on what machine, and the folder that it goes to."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Final

from foliot.kit.postgres import find_binaries

ROOT: Final = Path(__file__).parent.parent
PROOF: Final = ROOT / "docs" / "proof"
_TRIED: Final = ("src", "chaos", "requirements.lock")
"""What makes a run what it is: with changes in here it is not that of the commit."""


def commit(root: Path = ROOT) -> str:
    """The short name of what is checked out; `-dirty` if what was tried differs from it."""
    name = _git(root, "rev-parse", "--short", "HEAD") or "unknown"
    return f"{name}-dirty" if _git(root, "status", "--porcelain", "--", *_TRIED) else name


def folder_for(kind: str, tried: str = "") -> Path:
    """A folder of its own for each commit: the one that was `tried`, or what is checked out."""
    return PROOF / f"{kind}-{tried or commit()}"


def machine() -> dict[str, str]:
    return {
        "commit": commit(),
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "system": platform.platform(),
        "Python": platform.python_version(),
        "PostgreSQL": ".".join(map(str, find_binaries().version)),
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)  # noqa: S603, S607 - ours
    return done.stdout.decode().strip()
