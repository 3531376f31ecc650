"""What is published of such a run: a page for people, and the same for machines."""

from pathlib import Path
from typing import Any

import msgspec

from chaos import published
from chaos.schedulers.judge import Verdict

TRIED = ("commit", "cores", "processor", "system", "Python", "PostgreSQL")


def make(verdict: Verdict, hurts: dict[str, int], takeovers: int, given: dict[str, Any]) -> dict[str, Any]:
    return {
        **published.machine(),
        **given,
        "hurts": dict(sorted(hurts.items())),
        "takeovers": takeovers,
        "expected": verdict.expected,
        "fired": verdict.fired,
        "explained": verdict.explained,
        "lost": len(verdict.lost),
        "doubled": len(verdict.doubled),
        "invented": len(verdict.invented),
        "late": len(verdict.late),
        "early": len(verdict.early),
        "violations": verdict.violations,
        "lateness": {
            name: round(verdict.percentile(share), 3)
            for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
        },
    }


def write(folder: Path, found: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    (folder / "report.md").write_text(page(found))


def page(found: dict[str, Any]) -> str:
    summary = (
        f"{found['expected']:,} instants of {found['jobs']:,} jobs that fire every second, in {found['seconds']:.0f} s"
        f" during which a scheduler was killed, stopped, cut off or told to leave, or the database's clock jumped,"
        f" {sum(found['hurts'].values())} times:"
        f" **{found['violations']} violations**."
    )
    lines = [
        f"# Three schedulers, seed {found['seed']}",
        "",
        summary,
        "",
        f"To repeat it: `{found['command']}`",
        "",
        *_table("What was tried", {name: found[name] for name in TRIED}),
        *_table(
            "Every instant",
            {
                "expected": f"{found['expected']:,}",
                "fired": f"{found['fired']:,}",
                "not fired, and the ledger says why": f"{found['explained']:,}",
                "lost: neither": found["lost"],
                "doubled": found["doubled"],
                "invented: nobody asked for it": found["invented"],
                "more than 10 s late while a scheduler was well": found["late"],
                "earlier than the database's clock was ever ahead": found["early"],
            },
        ),
        *_table("What was done to them", {**found["hurts"], "shards that changed hands": f"{found['takeovers']:,}"}),
        *_table("Lateness in seconds, from the instant to its run, jumps of the clock apart", found["lateness"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _table(title: str, rows: dict[str, Any]) -> list[str]:
    return [f"## {title}", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items()), ""]
