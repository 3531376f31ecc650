"""What is published of a fuzzing of full length: `python tests/api/fuzzed.py FOLDER CASES`, after its shares."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from chaos import published

if TYPE_CHECKING:
    from api.fuzzing import Fuzzer

ENOUGH: Final = 20_000
"""Cases from which on it is a proof."""
TRIED: Final = ("commit", "cores", "processor", "system", "Python", "PostgreSQL")


def keep(fuzzer: "Fuzzer") -> None:
    """Leave what one share has found where the page is made from it; the environment says where."""
    if folder := os.environ.get("FUZZED"):
        found = {
            "sent": fuzzer.sent,
            "reached": dict(fuzzer.reached),
            "wanted": sorted(fuzzer.wanted),
            "findings": fuzzer.findings,
        }
        (Path(folder) / f"{min(fuzzer.wanted)}.json").write_text(json.dumps(found))


def together(shares: Iterable[Mapping[str, Any]], command: str) -> dict[str, Any]:
    shares = list(shares)
    reached: Counter[str] = Counter()
    for share in shares:
        reached.update(dict.fromkeys(share["wanted"], 0))
        reached.update(share["reached"])
    return {
        **published.machine(),
        "command": command,
        "cases": sum(share["sent"] for share in shares),
        "reached": dict(sorted(reached.items())),
        "findings": [each for share in shares for each in share["findings"]],
    }


def page(found: Mapping[str, Any]) -> str:
    reached, findings = found["reached"], found["findings"]
    done = sum(1 for count in reached.values() if count)
    summary = (
        f"{found['cases']:,} calls that schemathesis made from the OpenAPI document, to the application in the role"
        f" that sees one tenant's rows: **{len(findings)} findings** (an error of ours, or an answer that the"
        f" document does not know). Of {len(reached)} operations {done} have also done what they are for (2xx)."
    )
    rows = [f"| {name} | {found[name]} |" for name in TRIED]
    told = [f"- `{each}`" for each in findings] or ["None."]
    counts = [f"| {name} | {count:,} |" for name, count in reached.items()]
    lines = ["# The API, fuzzed", "", summary, "", f"To repeat it: `{found['command']}`", ""]
    lines += ["## What was tried", "", "| | |", "|---|---|", *rows, "", "## Findings", "", *told, ""]
    lines += ["## Answers of 2xx", "", "| operation | so many |", "|---|---:|", *counts]
    return "\n".join(lines) + "\n"


def main(folder: Path, cases: int) -> None:
    found = together(
        (json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))), f"make fuzz CASES={cases}"
    )
    place = published.folder_for("fuzz") if found["cases"] >= ENOUGH else folder
    place.mkdir(parents=True, exist_ok=True)
    (place / "fuzz.json").write_text(json.dumps(found, indent=1) + "\n")
    (place / "fuzz.md").write_text(page(found))
    print(f"the report is in {place}: {found['cases']:,} cases, {len(found['findings'])} findings")  # noqa: T201 - its output


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
