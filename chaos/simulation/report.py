"""What is published of a campaign of simulations."""

from pathlib import Path
from typing import Any

import msgspec

from chaos import published
from chaos.simulation.campaign import Tally
from chaos.simulation.mode import Mode


def write(tally: Tally, seeds: list[int]) -> Path:
    """Into a folder of its own in docs/proof; returns it."""
    folder = published.folder_for("simulation")
    folder.mkdir(parents=True, exist_ok=True)
    found = make(tally, seeds)
    (folder / "simulation.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    (folder / "simulation.md").write_text(page(found))
    return folder


def make(tally: Tally, seeds: list[int]) -> dict[str, Any]:
    return {
        **published.machine(),
        "command": f"make simulate SEEDS={len(seeds)} FIRST={seeds[0]}",
        "seconds": round(tally.took),
        "virtualSeconds": round(tally.virtual),
        "seeds": {mode: tally.seeds[mode] for mode in Mode},
        "acknowledged": tally.acknowledged,
        "effects": tally.effects,
        "faults": tally.faults,
        "statements": tally.statements,
        "fingerprint": tally.fingerprint,
        "rare": dict(tally.rare),
        "failed": {f"{each.seed} ({each.mode})": each.failures for each in tally.failed},
    }


def page(found: dict[str, Any]) -> str:
    seeds = found["seeds"]
    lines = [
        f"# Simulation of {found['commit']}",
        "",
        (
            f"{sum(seeds.values()):,} seeds ({seeds[Mode.SAFETY]:,} for safety, {seeds[Mode.LIVENESS]:,} for liveness),"
            f" {found['acknowledged']:,} acknowledged runs and jobs, {found['faults']:,} faults,"
            f" {found['statements']:,} statements, {found['virtualSeconds']:,} virtual seconds in"
            f" {found['seconds']:,} real ones, all processes together: **{len(found['failed'])} failed**."
        ),
        "",
        (
            f"Again: `{found['command']}`, on {found['cores']} cores of {found['processor']}, {found['system']},"
            f" Python {found['Python']}, PostgreSQL {found['PostgreSQL']}."
        ),
        "",
        "| rare path | times |",
        "|---|---|",
        *(f"| {path} | {times:,} |" for path, times in found["rare"].items()),
    ]
    for seed, failures in found["failed"].items():
        lines += ["", f"## Seed {seed}", "", *(f"- {each}" for each in failures)]
    return "\n".join([*lines, ""])
