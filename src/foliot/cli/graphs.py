"""`foliot run graph`: runs that wait for each other, as a tree."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import click

from foliot.cli.naming import run_argument
from foliot.cli.output import as_json, clean, instant, say, wants_json
from foliot.sdk.client import Foliot

_MARKS: Final = {
    "completed": "✓", "failed": "✗", "running": "▶", "cancelled": "⊘", "skipped": "⊘", "pending": "·"
}  # fmt: skip
_MOST_NAMED: Final = 3
_WIDEST: Final = 60
"""Columns before a name; what hangs deeper is drawn no further to the right."""


@click.command("graph")
@run_argument
@click.option("--cancel", is_flag=True, help="End what waits, and ask what runs to stop.")
@wants_json
def graph(run_id: str, cancel: bool, json: bool) -> None:
    """Show the graph that a run is part of: what has run, what waits, and for what."""
    client = Foliot()
    found = (client.cancel_graph(run_id) if cancel else client.get_graph(run_id)).values
    if json:
        as_json(found)
        return
    counts = ", ".join(f"{count:,} {state}" for state, count in found["counts"].items())
    at = f", scheduled {instant(found['scheduledAt'])} UTC" if found["scheduledAt"] else ""
    say(f"{found['status']}: {counts}{at}")
    for line in drawn(found):
        say(line)


def drawn(found: dict[str, Any]) -> Iterator[str]:
    """A line for each run, below the last of its parents; the other parents are named beside it."""
    nodes = {node["runId"]: node for node in found["nodes"]}
    parents: dict[str, list[str]] = defaultdict(list)
    for edge in found["edges"]:
        parents[edge["child"]].append(edge["parent"])
    depth: dict[str, int] = {}
    while len(depth) < len(nodes):  # as often as the graph is deep
        for run in nodes:
            if run not in depth and all(parent in depth for parent in parents[run]):
                depth[run] = 1 + max((depth[parent] for parent in parents[run]), default=-1)
    below: dict[str | None, list[str]] = defaultdict(list)
    for run in nodes:
        below[max(parents[run], key=lambda each: depth[each], default=None)].append(run)

    left = [(root, "", "", "") for root in reversed(below[None])]
    while left:
        run, above, lead, tail = left.pop()
        others = [nodes[each]["name"] for each in parents[run] if each != above]
        yield lead[-_WIDEST:] + _told(nodes[run], others, nodes)
        for place, child in enumerate(reversed(below[run])):
            left.append((child, run, tail + ("├─ " if place else "└─ "), tail + ("│  " if place else "   ")))


def _told(node: dict[str, Any], others: list[str], nodes: dict[str, Any]) -> str:
    line = f"{_MARKS.get(node['status'], '·')} {node['name']}  {node['state']}  {node['runId']}"
    if others:
        line += f"  (after {_named(others)} too)"
    if node.get("stuck"):
        failed = [nodes[each]["name"] for each in node["waitingFor"] if nodes[each]["state"] == "dead"]
        line += f"  waits for {_named(failed)}, which failed for good" if failed else "  stuck behind another"
    if node["errorMessage"]:
        line += f"  {node['errorMessage'].strip().splitlines()[-1]}"
    return clean(line)


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
