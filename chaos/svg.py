"""A picture in a few lines: lateness over time on a logarithmic scale, with the times under fault shaded."""

import math
from collections.abc import Sequence
from html import escape
from typing import Final

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 960, 360, 60, 40, 30
LOWEST, HIGHEST = 0.001, 100.0
"""Seconds at the foot and at the top of the scale."""
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#444}.grid{stroke:#ddd}.fault{fill:#d33;fill-opacity:.13}"
    ".typical{fill:none;stroke:#27c;stroke-width:1.5}.worst{fill:none;stroke:#b4661e;stroke-width:1}"
)


def lateness_over_time(
    points: Sequence[tuple[float, float]], faults: Sequence[tuple[float, float]], *, title: str
) -> str:
    """`points` are (second, how late), `faults` (from, to), all in seconds since the beginning."""
    span = max([1.0, *(at for at, _ in points), *(ended for _, ended in faults)])

    def across(at: float) -> float:
        return LEFT + (WIDTH - LEFT - 10) * at / span

    step = max(1.0, span / 600)
    slots: dict[int, list[float]] = {}
    for at, late in points:
        slots.setdefault(int(at / step), []).append(late)
    ordered = sorted(slots)
    typical = [(across(slot * step), _up(sorted(slots[slot])[len(slots[slot]) // 2])) for slot in ordered]
    worst = [(across(slot * step), _up(max(slots[slot]))) for slot in ordered]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/><text x="{LEFT}" y="20">{escape(title)}</text>',
        *(
            f'<rect class="fault" x="{across(began):.1f}" y="{TOP}" height="{HEIGHT - TOP - BOTTOM}"'
            f' width="{max(1.0, across(ended) - across(began)):.1f}"/>'
            for began, ended in faults
        ),
        *_grid(),
        *(
            f'<text x="{across(span * part / 6):.0f}" y="{HEIGHT - 10}">{span * part / 6:.0f} s</text>'
            for part in range(6)
        ),
        _line("worst", worst),
        _line("typical", typical),
        f'<text x="{WIDTH - 330}" y="20">blue: median, brown: worst, red: under fault</text></svg>',
    ]
    return "\n".join(parts) + "\n"


def _up(late: float) -> float:
    bounded = min(max(late, LOWEST), HIGHEST)
    part = math.log(bounded / LOWEST) / math.log(HIGHEST / LOWEST)
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part


def _grid() -> list[str]:
    rows = []
    for late, name in (
        (0.001, "1 ms"),
        (0.01, "10 ms"),
        (0.1, "0.1 s"),
        (1.0, "1 s"),
        (10.0, "10 s"),
        (100.0, "100 s"),
    ):
        y = _up(late)
        rows.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}"/>')
        rows.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
    return rows


def _line(name: str, points: Sequence[tuple[float, float]]) -> str:
    return f'<polyline class="{name}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
