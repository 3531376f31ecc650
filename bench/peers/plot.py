"""The picture: a bar for each peer and rate on a logarithmic scale, as SVG written by hand."""

import math
from html import escape
from typing import Any, Final

from bench.peers.results import Record, summary

PANELS: Final = (
    ("drain", "Drain, runs/s"),
    ("sustained", "Sustained, runs/s"),
    ("held", "Sustained beside a held transaction, runs/s"),
    ("p95", "Start latency p95 at 200/s, ms (shorter is better)"),
)
COLOURS: Final = {"foliot": "#0b7a75", "floor": "#8d99ae", "postgres": "#3a6ea5", "redis": "#c8553d"}
LEFT: Final = 150
WIDTH: Final = 420
ROW: Final = 20
GAP: Final = 40


def plot(found: dict[str, Any]) -> str:
    """Panels one below the other, each with the peers that have its number, the best first."""
    parts, top = [], 44
    for name, title in PANELS:
        bars = _bars(found["peers"], name)
        if bars:
            parts += _panel(title, bars, top)
            top += ROW * len(bars) + GAP
    key = "Foliot green, its raw floor grey, PostgreSQL peers blue, Redis peers red"
    size = f'width="{LEFT + WIDTH + 110}" height="{top + 10}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="10" y="18">Foliot {escape(found["commit"])}: {key} (logarithmic)</text>',
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _bars(peers: list[Record], name: str) -> list[tuple[str, str, float]]:
    found = [(peer["title"], _colour(peer), each["median"]) for peer in peers if (each := summary(peer, name))]
    shown = [bar for bar in found if bar[2] > 0]
    return sorted(shown, key=lambda bar: bar[2], reverse=not name.startswith("p"))


def _colour(peer: Record) -> str:
    return COLOURS.get(peer["name"]) or COLOURS[peer["store"]]


def _panel(title: str, bars: list[tuple[str, str, float]], top: int) -> list[str]:
    least = 10 ** math.floor(math.log10(min(value for *_, value in bars)))
    most = 10 ** math.ceil(math.log10(max(value for *_, value in bars)))
    decades = max(1.0, math.log10(most / least))
    lines = [f'<text x="10" y="{top}" font-weight="bold">{escape(title)}</text>']
    for row, (name, colour, value) in enumerate(bars):
        y = top + 8 + ROW * row
        width = max(2.0, WIDTH * math.log10(value / least) / decades)
        number = f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
        lines += [
            f'<text x="{LEFT - 6}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{y + 2}" width="{width:.1f}" height="{ROW - 5}" fill="{colour}"/>',
            f'<text x="{LEFT + width + 5:.1f}" y="{y + 13}">{number}</text>',
        ]
    return lines
