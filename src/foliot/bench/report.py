"""The bench as a page: what was measured, beside the floor, with the spread that says how far to trust it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from foliot.bench.targets import DISPATCH, RATES, Row, rows, schedule_targets, what_bounds

BESIDE_FLOOR: Final = ("enqueue", "drain", "sustained")
NOISY: Final = 1.25
"""A floor whose best repeat is so many times its worst was not the same machine throughout."""
METHOD: Final = """\
- Foliot and its raw floor (the same SQL in a bare loop) in turns, medians of three. The floor was tuned: every setting
  briefly, the best four for longer, the best two in full; it is the better of those two.
- The ratio is that of the medians. In brackets the least and the most that any two repeats would have given: if these
  are far apart, the machine was doing something else as well, and the ratio says little.
- Start-up of either side is not measured. A pause is the longest time in which the floor completed nothing.
- One producer process hands runs in through the service behind the API (its group commit, 1,000 a call), not through
  HTTP; one worker process runs them. Every finished run is in history, and a commit is on disk before it is answered.\
"""


def is_noisy(repeats: dict[str, list[int]]) -> bool:
    """Whether the repeats differ so much that the ratio says little."""
    return any(max(rates) > NOISY * min(rates) for rates in repeats.values())


def page(found: dict[str, Any]) -> str:
    """The whole report as Markdown."""
    machine, results = found["machine"], found["results"]
    head = (
        f"Made by `foliot bench --seconds {found['seconds']:g}` on {machine['measuredAt']}: {machine['processors']}"
        f" processors ({machine['processor']}), {machine['memoryGiB']} GiB, {machine['system']},"
        f" Python {machine['python']}, PostgreSQL {found['postgres']} (embedded, fsync on)."
        f" Load average {found['loadBefore']:.1f} before, {found['minutes']:.1f} minutes in all."
    )
    lines = [f"# Bench at {machine['commit']}", "", head]
    if "floor" in results:
        method = ["", METHOD] if any(name in results for name in BESIDE_FLOOR) else []
        lines += ["", *_rates(results), *_held_to(results), *_rest(results), *method, *_slowest(results)]
    for name, section in results.get("dispatch", {}).items():
        lines += ["", *_section(name, section)]
    if "schedules" in results:
        lines += ["", *_schedules(results["schedules"])]
    return "\n".join(lines) + "\n"


def _rates(results: dict[str, Any]) -> list[str]:
    shown = [name for name in BESIDE_FLOOR if name in results]
    if not shown:
        return []
    titles = ["", "Foliot", "its repeats", "raw floor", "its repeats", "ratio", "floor's settings", "longest pause"]
    rows = [[name, *_row(results, name)] for name in shown]
    table = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    noisy = [name for name in shown if is_noisy(results["repeats"][name])]
    warning = f"**Noisy: {', '.join(noisy)}. Repeats differ by more than a quarter; do not quote the ratio.**"
    return [*(f"| {' | '.join(cells)} |" for cells in table), "", *([warning, ""] if noisy else [])]


def _row(results: dict[str, Any], name: str) -> list[str]:
    floor, ratio, repeats = results["floor"], results["ratio"][name], results["repeats"][name]
    best = floor["settings"][name]
    return [
        f"{results[name]:,}/s",
        ", ".join(f"{rate:,}" for rate in repeats["foliot"]),
        f"{floor[name]:,}/s",
        ", ".join(f"{rate:,}" for rate in repeats["floor"]),
        f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['most']:.2f})",
        f"batch {best['batch']:,}, {best['connections']} connections",
        f"{floor['longestPause'][name]:.2f} s",
    ]


def rate_rows(results: dict[str, Any]) -> Iterator[Row]:
    """What the sections beside the raw floor are held to, as far as they were measured."""
    repeats, latencies = results.get("repeats", {}), results.get("repeats", {}).get("latency", [])
    found: dict[str, tuple[float, list[Any]]] = {}
    if "sustained" in results:
        ratio, ours = results["ratio"]["sustained"], repeats["sustained"]["foliot"]
        found["sustained"] = results["sustained"], ours
        found["ratio"] = ratio["median"], [ratio["least"], ratio["most"]]
        found["wal"] = results["walSustained"], repeats["wal"]
    for name, value in results.get("latencyMs", {}).items():
        found[name] = value, [each[name] for each in latencies]
    for target in RATES:
        if target.name in found:
            yield target.row(*found[target.name])


def _held_to(results: dict[str, Any]) -> list[str]:
    told = list(rate_rows(results))
    if not told:
        return []
    missed = any(verdict == "MISSED" for _, _, _, verdict, _ in told[:3]) and "busy" in results
    return [
        *_table(told),
        *([f"What bounds the sustained rate: {what_bounds(results['busy'])}.", ""] if missed else []),
    ]


def _table(told: list[Row], how: str = "median") -> list[str]:
    table = [("", how, "held to", "", "repeats"), ("---", "---:", "---:", "---", "---"), *told]
    return [*(f"| {' | '.join(cells)} |" for cells in table), ""]


def _section(name: str, found: dict[str, Any]) -> list[str]:
    if "skipped" in found:
        return [f"## {found['title']}", "", f"Skipped: {found['skipped']}."]
    how = "median" if len(found["repeats"]) > 1 else "measured once"
    lines = [f"## {found['title']}", "", found["about"], "", *_table(list(rows(found, DISPATCH[name])), how)]
    if found["boundBy"]:
        lines += [f"What bounds it: {found['boundBy']}.", ""]
    busy = ", ".join(f"{who} {share:g}" for who, share in found["busy"].items())
    return [*lines, f"- Processors kept busy: {busy}.", *_course(found["repeats"][-1])]


def _course(last: dict[str, Any]) -> list[str]:
    """How the last repeat went on, where that matters."""
    if tenths := last.get("tenths"):
        told = (
            ["tenth of the time", "settled/s", "in its worst second", "claim ms", "its p95"],
            *([n, t["rate"], t["worst"], t["claim"], t["claim95"]] for n, t in enumerate(tenths, 1)),
        )
    elif looks := last.get("looks"):
        names = [name for name in looks[-1] if name not in {"at", "relations"}]
        few = looks[:: max(1, len(looks) // 10)]
        told = (
            ["second", *(f"{name}, MB" for name in names)],
            *([f"{look['at']:.0f}", *(f"{look.get(name, 0) / 1e6:.1f}" for name in names)] for look in few),
        )
    else:
        return []
    head, *body = told
    table = [head, ["---:"] * len(head), *body]
    return ["", *(f"| {' | '.join(map(str, cells))} |" for cells in table)]


def _rest(results: dict[str, Any]) -> list[str]:
    lines = []
    titles = {
        "latencyMs": "Start latency at 200/s, commit included",
        "twoCommitsMs": "Two bare commits, one after the other",
        "latenessMs": "10,000 cron jobs of one second",
    }
    for name, title in titles.items():
        if name in results:
            lines.append(f"- {title}: " + ", ".join(f"{which} {value:g} ms" for which, value in results[name].items()))
    if "walBytesPerRun" in results:
        lines.append(f"- WAL: {results['walBytesPerRun']:,} bytes per run.")
    if results.get("runsSubmitted"):
        lines.append(f"- {results['historyRows']:,} rows of history for {results['runsSubmitted']:,} runs submitted.")
    return lines


def _slowest(results: dict[str, Any]) -> list[str]:
    """The runs that started last after their call, and what was seen at the same time."""
    if not results.get("slowest"):
        return []
    head = ["repeat", "second", "ms", "bare commit, ms", "woken late, ms", "steal, % of a processor", "server"]
    told = [
        [number, each["at"], each["ms"], each["commit"], each["wake"], each["steal"], "; ".join(each["server"])]
        for number, repeat in enumerate(results["slowest"], 1)
        for each in repeat
    ]
    also = sum(max(row[3], row[4]) >= row[2] / 2 for row in told)
    about = (
        f"Start latency was measured for {results['latencySeconds']:g} s a repeat, in turns with two bare commits at"
        " the same pace. Meanwhile something that has no part in Foliot made a bare commit every 40 ms, and noted how"
        " late it was woken for it. Beside each of the slowest starts stand the worst of both at the same moment, and"
        f" what the server did by itself. {also} of these {len(told)} times a bare commit or a wake-up took at least"
        " half as long; what is shorter than 40 ms may fall between two of them."
    )
    table = [head, ["---:"] * (len(head) - 1) + ["---"], *told]
    return ["", "## The slowest starts", "", about, "", *(f"| {' | '.join(map(str, cells))} |" for cells in table)]


def schedules_rows(found: dict[str, Any]) -> list[Row]:
    return list(rows(found, schedule_targets(found["perSecond"])))


def _schedules(found: dict[str, Any]) -> list[str]:
    about = (
        f"About {found['perSecond']:,} of them fall due each second, for {found['seconds']:g} s (crons, intervals and"
        f" timers); then {found['burst']:,} at one instant, while crons and intervals go on; then crons"
        " and intervals alone, and beside late instants that are made up for, at the usual pace and for as long, the"
        " rest of them taken back; then no scheduler at all."
        f" One scheduler, one worker, medians of {len(found['repeats'])}. Lateness is from the instant to the handler."
    )
    record = (
        f"- Every instant of the window is on record exactly once: {found['due']:,.0f} due, {found['skipped']:,.0f}"
        f" skipped, {found['missed']:,.0f} missed. Writing the jobs took {found['writtenIn']:,.0f} s."
    )
    busy = ", ".join(f"{name} {share:g}" for name, share in found["busy"].items())
    lines = [f"## With {found['jobs']:,} jobs in place", "", about, "", *_table(schedules_rows(found))]
    if found["boundBy"]:
        lines += [f"What bounds it: {found['boundBy']}.", ""]
    return [*lines, f"- Processors kept busy: {busy}.", record]


def publish(folder: Path, found: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "bench.md").write_text(page(found))
