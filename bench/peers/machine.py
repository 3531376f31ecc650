"""What the numbers were taken on."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path


def commit(root: Path) -> str:
    """The short name of what is checked out; `-dirty` when files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=9", "--exclude=*"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=30)  # noqa: S603 - ours
    return found.stdout.strip() or "unknown"


def describe_machine(root: Path) -> dict[str, str | int]:
    return {
        "measuredAt": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": commit(root),
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
