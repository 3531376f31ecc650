"""What is published of a run: a page for people, the same for machines, and a picture."""

from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec

from chaos import course, figures, published
from chaos.check import Case
from chaos.check.waits import first_starts
from chaos.records import Evidence, uncollected
from chaos.result import Result
from chaos.run import Done
from chaos.svg import lateness_over_time
from chaos.verdict import Verdict

ROWS: Final = 100
"""Of faults and of quiet times on the page: a run of hours has more than anybody reads."""
TRIED = ("commit", "cores", "processor", "system", "Python", "PostgreSQL")


@uncollected
def make(
    evidence: Evidence, done: Done, verdict: Verdict, came: Result, judged_in: float
) -> tuple[dict[str, Any], str]:
    """Everything that the report says, and its picture; `judged_in`: seconds."""
    case = Case(evidence)
    waits = first_starts(case)
    outcomes = Counter(operation.outcome for operation in evidence.operations)
    found: dict[str, Any] = {
        **published.machine(),
        **{name: evidence.settings[name] for name in ("commit", "command") if name in evidence.settings},
        "seed": evidence.seed,
        "seconds": evidence.settings["seconds"],
        "acknowledged": done.acknowledged,
        "operations": {kind: outcomes[kind] for kind in sorted(outcomes)},
        "kinds": dict(sorted(Counter(operation.kind for operation in evidence.operations).items())),
        "effects": len(evidence.effects),
        "judgedIn": round(judged_in, 1),
        "faults": dict(sorted(Counter(fault.kind for fault in evidence.faults).items())),
        "faultsInOrder": course.faults(case),
        "writesWithoutRoom": evidence.no_room,
        "notPossibleHere": dict(done.lacking),
        "neverHappened": done.unused,
        "lateness": verdict.measures["L1"],
        "quietTimes": course.quiet_times(case, waits),
        "recovery": verdict.measures["L2"]["promised"] | verdict.measures["L2"]["unpromised"],
        "failures": came.failures,
        "shortcomings": came.shortcomings,
        "missedTargets": verdict.missed,
        "unmeasured": verdict.unmeasured,
        "unjudged": f"{verdict.unjudged} of {verdict.jobs} jobs",
        "zombies": {
            "handlers that ended after others had begun their run": verdict.rare["zombie rejections"],
            "writes that reached the database after others had taken over": verdict.rare["late writes"],
            "results that a worker was told were not taken": evidence.refused,
        },
        "cameToRest": evidence.dump.quiet,
        "verdict": msgspec.to_builtins(verdict),
    }
    picture = lateness_over_time(
        [(each.at - case.began, each.late) for each in waits],
        [(began - case.began, ended - case.began) for began, ended in figures.windows(evidence.faults)],
        title=f"Lateness of {done.acknowledged:,} acknowledged runs, seed {evidence.seed}",
    )
    return found, picture


def write(folder: Path, found: dict[str, Any], picture: str, verdict: Verdict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    (folder / "lateness.svg").write_text(picture)
    judged = verdict.to_markdown(found["commit"]).replace("# Verdict", "## Verdict", 1)
    (folder / "report.md").write_text(page(found) + "\n" + judged)


def page(found: dict[str, Any]) -> str:
    lines = [
        f"# Chaos run, seed {found['seed']}",
        "",
        f"{found['acknowledged']:,} acknowledged runs in {found['seconds']:.0f} s under"
        f" {sum(found['faults'].values())} faults: **{found['verdict']['violations']} violations**."
        + ("" if found["cameToRest"] else " The system did not come to rest."),
        *_list("The run **failed**:", found["failures"], "The run passed."),
        *_list("It is no proof:", found["shortcomings"]),
        *_list("Targets of quality that were missed:", found["missedTargets"], "No target of quality was missed."),
        *_list("Not measured, for there was nothing to measure:", found["unmeasured"]),
        "",
        f"{found['effects']:,} effects were read and judged in {found['judgedIn']:.1f} s.",
        f"Too many unanswered calls to judge their instants: {found['unjudged']}.",
        "What the checks and measures mean: [reading a chaos report](../../guides/chaos.md).",
        "",
        "![Lateness over time, times under fault shaded](lateness.svg)",
        "",
        *_table("What was tried", ("", ""), {name: found[name] for name in (*TRIED, "seed")}),
        *([f"To repeat it: `{found['command']}`", ""] if found.get("command") else []),
        *_table("What clients saw", ("outcome", "calls"), found["operations"]),
        *_table("Faults", ("kind", "times"), found["faults"]),
        f"Writes of the database that failed on the full disk: {found['writesWithoutRoom']:,}.",
        "",
        *_in_order(found["faultsInOrder"]),
        "## Lateness in seconds",
        "",
        "Quiet: no fault is on, and none has ended within a lease and ten seconds.",
        "",
        "| | runs | p50 | p95 | p99 | p99.9 | max |",
        "|---|---|---|---|---|---|---|",
        *(_percentiles(when, values) for when, values in found["lateness"].items()),
        "",
        *_quiet_times(found["quietTimes"]),
        "## Recovery",
        "",
        "| from … to … | faults | cases | worst | promised | kept |",
        "|---|---|---|---|---|---|",
        *(_recovered(name, each) for name, each in found["recovery"].items()),
        "",
        *_table(
            "Zombies: what came from workers that had lost their lease; S6 is that none of it was taken",
            ("", "times"),
            found["zombies"],
        ),
        *_table("Left out", ("kind", "why"), found["notPossibleHere"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _list(title: str, items: list[str], otherwise: str = "") -> list[str]:
    said = [title, *(f"- {each}" for each in items)] if items else [otherwise] if otherwise else []
    return ["", *said] if said else []


def _in_order(faults: list[dict[str, Any]]) -> list[str]:
    rows = [f"| {each['at']:.1f} | {each['kind']} | {each['target']} | {each['lasted']:.1f} s |" for each in faults]
    return [
        f"In order, by seconds since the first call of a client{_how_many(rows)}:",
        "",
        "| second | kind | of | lasted |",
        "|---|---|---|---|",
        *rows[:ROWS],
        "",
    ]


def _quiet_times(times: list[dict[str, Any]]) -> list[str]:
    rows = [_percentiles(f"{each['from']:.0f} | {each['to']:.0f} | {each['after'] or '-'}", each) for each in times]
    return [
        f"Each quiet time by itself, by the same clock as the faults{_how_many(rows)}:",
        "",
        "| from | to | the last fault before | runs | p50 | p95 | p99 | p99.9 | max |",
        "|---|---|---|---|---|---|---|---|---|",
        *rows[:ROWS],
        "",
    ]


def _how_many(rows: list[str]) -> str:
    return f" (the first {ROWS} of {len(rows):,}; report.json has them all)" if len(rows) > ROWS else ""


def _percentiles(when: str, values: dict[str, float]) -> str:
    numbers = (f"{values.get(name, 0):.3f}" for name in ("p50", "p95", "p99", "p99.9", "max"))
    return f"| {when} | {values['count']:,} | {' | '.join(numbers)} |"


def _table(title: str, head: tuple[str, str], rows: dict[str, Any]) -> list[str]:
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return [f"## {title}", "", f"| {head[0]} | {head[1]} |", "|---|---|", *lines, ""]


def _recovered(name: str, each: dict[str, Any]) -> str:
    worst, bound = each.get("worst"), each.get("bound")
    kept = "not measured" if worst is None else "-" if bound is None else "yes" if worst <= bound else "**no**"
    return f"| {name} | {each['faults']} | {each['cases']} | {_seconds(worst)} | {_seconds(bound)} | {kept} |"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
