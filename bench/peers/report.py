"""The tables: medians, Foliot's ratio to each, the spread, the settings and what to keep in mind."""

import json
import sys
from pathlib import Path
from typing import Any, Final

from bench.peers.candidates import in_words
from bench.peers.plan import SCHEDULES
from bench.peers.plot import plot
from bench.peers.results import Record, errors, lacking, schedule_summary, summary
from bench.peers.verdicts import LATENCIES, verdicts

RATES: Final = (
    ("bulk", "Enqueue bulk/s"),
    ("single", "Enqueue single/s"),
    ("drain", "Drain/s"),
    ("sustained", "Sustained/s"),
    ("held", "Sustained/s, held transaction"),
)
COSTS: Final = (
    ("wal", "WAL B/run, drain"),
    ("sustainedWal", "WAL B/run, sustained"),
    ("heldWal", "WAL B/run, held"),
    ("dead", "Dead rows after drain"),
    ("sustainedDead", "after sustained"),
    ("heldDead", "after held"),
)
COMPARED: Final = (*RATES, ("p95", "Start p95"), ("wal", "WAL/run, drain"))
RATIO: Final = (
    "Foliot's median by that of the peer: of rates above 1 is faster, of start latency and WAL below 1 is less."
    " In brackets the least and the most that any two repeats would have given; far apart, it says little."
)
DASHES: Final = (
    "A dash means not measured: Redis has no transaction that could be held open, and the raw floor has no handlers to"
    " start."
)
COST: Final = (
    "Peers on PostgreSQL only. Redis has no WAL and no dead rows; how much it wrote into its append-only file was not"
    " measured."
)
SCHEDULED: Final = """\
Of the peers, only APScheduler is measured here: it alone keeps schedules in PostgreSQL that are made at run time. \
PgQueuer, Graphile Worker, awa-pg, Procrastinate and Celery take theirs from code or from a file when they start. \
BullMQ and taskiq can keep theirs in Redis, which was not measured. Dramatiq has none of its own.

The two do not store the same:

- Foliot has as many cron jobs as the count says, spread over 20 tenants, and all have the same cron expression. It \
keeps an expression once for each tenant. So every job is a row, but there are only 20 schedules to work out.
- APScheduler has as many jobs, each a row with an interval of one day of its own. When they are due, it works out and \
writes back every one by itself.
- Foliot is given 1,000 jobs a call, APScheduler one: it has no call for many. Both hold 1,000 more, due another day.\
"""
HELD_TO: Final = (
    "Medians of the repeats; then each round, in which Foliot and the peer had their turns soon after each other. Start"
    " latency is held to that of the peers that keep what they accept in PostgreSQL, as Foliot does."
)
TRIED: Final = (
    "Where a peer's documents do not say what is fastest on a machine like this one, several settings were tried before"
    " the measurement: {seconds:g} s of sustained load each time, in turns. The one with the fastest try was measured,"
    " in all cells."
)
NONE: Final = "-"
METHOD: Final = """\
- A run does nothing and carries about 100 bytes of JSON. One producer process; the workers as each row's settings say. Clients, workers and server share the processors.
- Enqueue bulk: one producer, one connection, as many a call as the settings say. Single: one call after the other, each awaited.
- Drain: handler starts per second from the first to the last, start-up not counted. Latency follows on the same, now empty, store: from just before the add call to the handler's first line, at 200 a second; the add's commit is part of it.
- Sustained: one producer beside the workers, holding back above a backlog (20,000 unless the settings say otherwise); handler starts within the window. Held: the same beside a transaction that was opened before and never ends, so that vacuum may remove nothing.
- The raw floor counts settled runs, and has no handlers: no latency. Its enqueue may use several connections.
- WAL is that of the whole server over enqueue and drain, per run. Dead rows are those that the statistics show when the workers have stopped.
- Schedules: all due at one instant; lateness from that instant to the handler's first line.
- Every cell has a fresh database (or an emptied Redis). Repeats go round all peers, so that a noisy hour hits them all.
- Durability differs: PostgreSQL rows lose nothing that was accepted, Redis rows can lose about a second. Compare within a group first.\
"""  # noqa: E501 - a line of Markdown is a paragraph


def publish(folder: Path, found: dict[str, Any]) -> None:
    """The page, its picture, all numbers, and those of each peer in a file of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.svg").write_text(plot(found))
    (folder / "peers.md").write_text(report(found, "peers.svg"))
    (folder / "peers.json").write_text(json.dumps(found, indent=1) + "\n")
    for peer in found["peers"]:
        (folder / f"{peer['name']}.json").write_text(json.dumps(peer, indent=1) + "\n")


def render(folder: Path) -> None:
    """Write page and picture anew from the numbers that stand in the folder; nothing is measured."""
    publish(folder, json.loads((folder / "peers.json").read_text()))


def report(found: dict[str, Any], picture: str) -> str:
    """The whole page as Markdown."""
    peers: list[Record] = found["peers"]
    measured = [peer for peer in peers if peer["repeats"]]
    parts = [
        f"# Foliot beside its peers, at {found['commit']}",
        _head(found),
        f"![Throughput of each peer]({picture})",
        _held_to(measured),
        "## Throughput and latency\n\nMedians of the repeats.",
        _main_table(measured),
        f"## Foliot / peer\n\n{RATIO}",
        _ratio_table(measured),
        f"## Cost in PostgreSQL\n\n{COST}",
        _cost_table(measured),
        f"## Schedules all due at one instant\n\n{SCHEDULED}",
        _schedule_table(measured),
        "## Spread: least to most of the repeats",
        _spread_table(measured),
        "## Settings and durability",
        _settings(measured),
        _tried(found),
        _missing(peers),
        "## How it was measured",
        METHOD,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(found: dict[str, Any]) -> str:
    machine, loads = found["machine"], [each["loadBefore"] for peer in found["peers"] for each in peer["repeats"]]
    server = ", ".join(f"{name} {value}" for name, value in machine.get("postgres", {}).items())
    latency = f" ({found['latencySeconds']:g} s of start latency)" if "latencySeconds" in found else ""
    short = lacking(found["peers"], found["repeats"])
    redis = " ".join(filter(None, ("Redis", machine.get("redis"))))
    node = f", Node {machine['node']}" if "node" in machine else ""
    made = (
        f"Made by `make bench-peers` on {machine['measuredAt']}: {machine['processors']} processors"
        f" ({machine['processor']}), {machine['memoryGiB']} GiB, {machine['system']}, Python {machine['python']}{node}."
    )
    lines = [
        made,
        f"PostgreSQL (embedded, one server for all): {server}." if server else "",
        f"{redis} (Debian's): append-only file, flushed every second, no snapshots.",
        f"Window {found['seconds']:g} s{latency}, at most {found['runs']:,} runs in a drain,"
        f" {found['repeats']} repeats."
        + (f" Load average before a repeat: at most {max(loads):.1f}." if loads else "")
        + (f" Measuring took {minutes:.0f} minutes in all." if (minutes := _minutes(found["peers"])) else ""),
        "" if found["full"] else "**A shortened run: it shows that the bench works, not how fast anything is.**",
        f"**Not complete: {'; '.join(short)}.**" if short else "",
    ]
    return "\n".join(filter(None, lines))


def _minutes(peers: list[Record]) -> float:
    """Of tries and repeats together, also if they were made on several days; installing is no part of it."""
    told = [each for peer in peers for each in (*peer.get("tried", ()), *peer["repeats"])]
    return float(sum(each.get("seconds", 0.0) for each in told)) / 60


def _held_to(peers: list[Record]) -> str:
    told = verdicts(peers)
    if not told:
        return ""
    rows = [[each.what, each.found, each.wanted, each.word, each.rounds] for each in told]
    return f"## What Foliot is held to\n\n{HELD_TO}\n\n" + _table(["", "Foliot", "held to", "", "rounds"], rows)


def _foliot(peers: list[Record]) -> Record | None:
    return next((peer for peer in peers if peer["name"] == "foliot"), None)


def _cell(peer: Record, name: str, digits: int = 0) -> str:
    found = summary(peer, name)
    return NONE if found is None else f"{found['median']:,.{digits}f}"


def _quotient(ours: Record, peer: Record, name: str) -> str:
    mine, theirs = summary(ours, name), summary(peer, name)
    if mine is None or theirs is None or not theirs["min"]:
        return NONE
    least, most = mine["min"] / theirs["max"], mine["max"] / theirs["min"]
    return f"{_ratio(mine['median'] / theirs['median'])} ({_ratio(least)} to {_ratio(most)})"


def _ratio_table(peers: list[Record]) -> str:
    ours = _foliot(peers)
    if ours is None:
        return "Foliot itself was not measured."
    rows = [[f"Foliot / {peer['title']}", *(_quotient(ours, peer, name) for name, _ in COMPARED)] for peer in peers]
    shown = [row for peer, row in zip(peers, rows, strict=True) if peer is not ours and set(row[1:]) != {NONE}]
    return _table(["", *(title for _, title in COMPARED)], shown)


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _table(titles: list[str], rows: list[list[str]]) -> str:
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _main_table(peers: list[Record]) -> str:
    titles = ["Peer", *(title for _, title in RATES), "Start p50 / p95 / p99 ms", "Repeats"]
    rows = []
    for peer in peers:
        if any(summary(peer, name) for name, _ in RATES):
            waits = " / ".join(_cell(peer, name, 1) for name in LATENCIES)
            cells = [_cell(peer, name) for name, _ in RATES]
            if peer["bulkCall"].startswith("no such call"):
                cells[0] += "¹"
            shown = NONE if summary(peer, "p50") is None else waits
            rows.append([f"{peer['title']} {peer['version']}", *cells, shown, str(len(peer["repeats"]))])
    return _table(titles, rows) + f"\n\n¹ It has no call for many; see its settings.\n\n{DASHES}"


def _cost_table(peers: list[Record]) -> str:
    titles = ["Peer", *(title for _, title in COSTS)]
    rows = [[peer["title"], *(_cell(peer, name) for name, _ in COSTS)] for peer in peers if summary(peer, "wal")]
    return _table(titles, rows)


def _schedule_table(peers: list[Record]) -> str:
    titles = ["Scheduler", "Count", "Repeats", "Lateness p50 / p95 / p99 / max s", "Fires/s", "Stored/s"]
    rows = []
    for count in SCHEDULES:
        for peer in peers:
            late = [schedule_summary(peer, count, name) for name in (*LATENCIES, "max", "fires", "stores")]
            if late[0] is not None:
                medians = [each["median"] for each in late if each is not None]
                shown = " / ".join(f"{value:.2f}" for value in medians[:4])
                repeats = f"{late[0]['repeats']:.0f}"
                rates = [f"{value:,.0f}" for value in medians[4:]]
                rows.append([f"{peer['title']} {peer['version']}", f"{count:,}", repeats, shown, *rates])
    return _table(titles, rows)


def _spread_table(peers: list[Record]) -> str:
    names = [*(name for name, _ in RATES), *LATENCIES]
    rows = []
    for peer in peers:
        spreads = [summary(peer, name) for name in names]
        digits = [1 if name in LATENCIES else 0 for name in names]
        shown = [
            f"{each['min']:,.{places}f} to {each['max']:,.{places}f}" if each else NONE
            for each, places in zip(spreads, digits, strict=True)
        ]
        if any(spreads):
            rows.append([peer["title"], *shown])
    return _table(["Peer", *(title for _, title in RATES), "p50 ms", "p95 ms", "p99 ms"], rows)


def _settings(peers: list[Record]) -> str:
    store = {"postgres": "PostgreSQL", "redis": "Redis"}
    return "\n".join(
        f"- **{peer['title']}** ({', '.join(peer['packages'])}; {store[peer['store']]}):"
        f" {', '.join(filter(None, (peer.get('chosen'), peer['settings'])))}."
        f" Bulk: {peer['bulkCall']}. Durability: {peer['durability']}."
        + (f" Not measured: {peer['notChosen']}." if peer.get("notChosen") else "")
        for peer in peers
    )


def _tried(found: dict[str, Any]) -> str:
    rows = [
        [peer["title"], told["settings"], in_words(told), "measured" if told["settings"] == peer["chosen"] else ""]
        for peer in found["peers"]
        for told in peer.get("tried", ())
    ]
    if not rows:
        return ""
    table = _table(["Peer", "Settings", "Sustained/s, each try", ""], rows)
    return f"## Settings that were tried\n\n{TRIED.format(seconds=found['trySeconds'])}\n\n{table}"


def _missing(peers: list[Record]) -> str:
    """Everything that has no number, each with why."""
    lines = [f"- {peer['title']}: {peer['notMeasured'] or 'not reached'}." for peer in peers if not peer["repeats"]]
    for peer in peers:
        lines += [f"- {peer['title']}, {cell}: {why}" for cell, why in errors(peer).items()]
        cells = [each for each in peer["repeats"] if each.get("drained", 0) < each.get("runs", 0) and "drained" in each]
        lines += [f"- {peer['title']}, drain: {each['drained']:,} of {each['runs']:,} in its time." for each in cells]
        again = max((each.get("again", 0) for each in peer["repeats"]), default=0)
        if again:
            lines.append(f"- {peer['title']}: {again:,} runs were started a second time after its workers restarted.")
    return "## Not measured, or not in full\n\n" + "\n".join(lines) if lines else ""


if __name__ == "__main__":
    render(Path(sys.argv[1]))
