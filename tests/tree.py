"""What must not be in the tree: addresses of registries, paths of a machine, built or binary files."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "the address of a package registry": re.compile(r"https?://\S*(pypi|pythonhosted|npmjs|debian)\.", re.IGNORECASE),
    "a path of one machine": re.compile(r"(?<![\w./-])/(root|work|home/[a-z]+)/"),
    "a secret": re.compile(r"fol_[a-z0-9]{12}_[A-Za-z0-9_-]{43}"),
}
NEVER = re.compile(r"(^|/)(uv\.lock|node_modules|\.env)(/|$)|\.(so|whl|pyc|exe|dll)$")
LARGEST = 1 << 20


def faults() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    found = []
    for name in filter(None, listed.decode().split("\0")):
        path = ROOT / name
        if not path.is_file():
            continue
        content = path.read_bytes()
        if NEVER.search(name) or b"\0" in content or len(content) > LARGEST:
            found.append(f"{name}: built, binary or too large to be committed")
            continue
        if path == Path(__file__):
            continue
        for number, line in enumerate(content.decode().splitlines(), 1):
            found += [f"{name}:{number}: {what}" for what, pattern in FORBIDDEN.items() if pattern.search(line)]
    return found


if __name__ == "__main__":
    wrong = faults()
    print("\n".join(wrong) or "tree: nothing that must not be there")  # noqa: T201 - this is its output
    sys.exit(1 if wrong else 0)
