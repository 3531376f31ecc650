"""What the numbers were taken on: which commit, which machine."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import foliot

ROOT: Final = Path(foliot.__file__).resolve().parents[2]
_TRIED: Final = ("src", "bench", "requirements.lock")
"""What makes a run what it is: with changes in here it is not that of the commit."""


def proofs() -> Path | None:
    """Where reports are published; none if this Foliot was installed, not checked out."""
    folder = ROOT / "docs" / "proof"
    return folder if folder.is_dir() and (ROOT / ".git").exists() else None


def commit() -> str:
    """The short name of what is checked out; `-dirty` if what was measured differs from it."""
    name = _git("rev-parse", "--short", "HEAD") or "unknown"
    return f"{name}-dirty" if _git("status", "--porcelain", "--", *_TRIED) else name


def describe_machine() -> dict[str, str | int]:
    return {
        "measuredAt": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": commit(),
        "processors": os.cpu_count() or 0,
        "processor": _processor(),
        "memoryGiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False, timeout=30)  # noqa: S603, S607 - ours
    except OSError:
        return ""
    return done.stdout.decode().strip()
