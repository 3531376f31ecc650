"""What is published of a run: a page for people, the same for machines, and a picture."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from chaos import figures
from chaos.nemesis import NOT_YET
from chaos.records import Evidence
from chaos.run import Done
from chaos.svg import lateness_over_time

MOST_SHOWN = 20
"""Violations that the page tells in full; the JSON has all."""


def make(evidence: Evidence, done: Done, violations: list[dict[str, Any]] | None, logs: Path) -> dict[str, Any]:
    """Everything that the report says. `violations` is None if there is no checker to ask."""
    outcomes = Counter(operation.outcome for operation in evidence.operations)
    return {
        "seed": evidence.seed,
        "seconds": evidence.settings["seconds"],
        "acknowledged": done.acknowledged,
        "checked": violations is not None,
        "violations": violations or [],
        "operations": {kind: outcomes[kind] for kind in sorted(outcomes)},
        "kinds": dict(sorted(Counter(operation.kind for operation in evidence.operations).items())),
        "effects": len(evidence.effects),
        "faults": dict(sorted(Counter(fault.kind for fault in evidence.faults).items())),
        "notPossibleHere": {**done.lacking, **NOT_YET},
        "neverHappened": done.unused,
        "rarePaths": figures.rare_paths(evidence, logs),
        "lateness": figures.split_lateness(evidence),
        "recovery": figures.recovery(evidence),
        "cameToRest": evidence.dump.quiet,
    }


def write(folder: Path, found: dict[str, Any], evidence: Evidence) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    picture = lateness_over_time(
        figures.lateness(evidence),
        figures.windows(evidence.faults),
        title=f"Lateness of {len(evidence.effects):,} effects, seed {evidence.seed}",
    )
    (folder / "lateness.svg").write_text(picture)
    (folder / "report.md").write_text(page(found))


def page(found: dict[str, Any]) -> str:
    verdict = f"{len(found['violations'])} violations" if found["checked"] else "not checked"
    lines = [
        f"# Chaos run, seed {found['seed']}",
        "",
        f"{found['acknowledged']:,} acknowledged runs in {found['seconds']:.0f} s under"
        f" {sum(found['faults'].values())} faults: **{verdict}**."
        + ("" if found["cameToRest"] else " The system did not come to rest."),
        "",
        "![Lateness over time, times under fault shaded](lateness.svg)",
        "",
        *_table("What clients saw", ("outcome", "calls"), found["operations"]),
        *_table("Faults", ("kind", "times"), found["faults"]),
        *_table("Rare paths", ("path", "times walked"), found["rarePaths"]),
        "## Lateness in seconds",
        "",
        "| | p50 | p95 | p99 | p99.9 | max |",
        "|---|---|---|---|---|---|",
        *(
            f"| {when} | "
            + " | ".join(f"{values.get(name, 0):.3f}" for name in ("p50", "p95", "p99", "p99.9", "max"))
            + " |"
            for when, values in found["lateness"].items()
        ),
        "",
        "## Recovery",
        "",
        "| from … to … | cases | worst |",
        "|---|---|---|",
        *(f"| {name} | {each['cases']} | {_seconds(each.get('worst'))} |" for name, each in found["recovery"].items()),
        "",
    ]
    if found["notPossibleHere"]:
        lines += _table("Left out", ("kind", "why"), found["notPossibleHere"])
    if found["violations"]:
        lines += ["## Violations", "", *_violations(found["violations"])]
    return "\n".join(lines).rstrip() + "\n"


def _violations(violations: list[dict[str, Any]]) -> list[str]:
    shown = [
        f"```json\n{msgspec.json.format(msgspec.json.encode(each)).decode()}\n```" for each in violations[:MOST_SHOWN]
    ]
    more = len(violations) - len(shown)
    return [*shown, *([f"… and {more} more in report.json"] if more else [])]


def _table(title: str, head: tuple[str, str], rows: dict[str, Any]) -> list[str]:
    return [
        f"## {title}",
        "",
        f"| {head[0]} | {head[1]} |",
        "|---|---|",
        *(f"| {a} | {b} |" for a, b in rows.items()),
        "",
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
