"""What Foliot is held to beside its peers, judged by the numbers that are kept."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from bench.peers.results import Record, summary

TWICE: Final = 2.0
"""Foliot's sustained rate by that of the fastest peer, at least."""
OF_FLOOR: Final = 0.7
"""Foliot's sustained rate by that of the raw floor, at least."""
LATENCIES: Final = ("p50", "p95", "p99")
OURS: Final = ("foliot", "floor")


class Verdict(NamedTuple):
    """One line of the table: all in words, but whether it was met."""

    what: str
    found: str
    wanted: str
    is_met: bool
    rounds: str
    """The same of each round, in which Foliot and the peer had their turns soon after each other."""
    is_always_met: bool

    @property
    def word(self) -> str:
        if not self.is_met:
            return "MISSED"
        return "met" if self.is_always_met else "met, not always"


def verdicts(peers: list[Record]) -> list[Verdict]:
    """As far as the numbers go: what was not measured is not judged."""
    by_name = {peer["name"]: peer for peer in peers}
    ours, floor = by_name.get("foliot"), by_name.get("floor")
    if ours is None:
        return []
    others = [peer for peer in peers if peer["name"] not in OURS]
    found = list(_shares(ours, fastest(others), TWICE, "sustained, times that of the fastest peer"))
    found += _shares(ours, floor, OF_FLOOR, "sustained, share of the")
    for peer in others:
        if peer["store"] == "postgres":
            found += _waits(ours, peer)
    return found


def fastest(peers: list[Record]) -> Record | None:
    """The peer with the highest median of sustained load."""
    rates = [(each["median"], peer) for peer in peers if (each := summary(peer, "sustained"))]
    return max(rates, key=lambda each: each[0])[1] if rates else None


def _shares(ours: Record, peer: Record | None, bound: float, what: str) -> Iterator[Verdict]:
    pairs = _pairs(ours, peer, "sustained")
    mine, theirs = summary(ours, "sustained"), summary(peer, "sustained") if peer else None
    if peer is None or mine is None or theirs is None or not theirs["median"]:
        return
    share = mine["median"] / theirs["median"]
    rounds = [first / second for first, second in pairs if second]
    yield Verdict(
        f"{what} ({peer['title']})" if peer["name"] != "floor" else f"{what} raw floor",
        f"{share:.2f}",
        f"at least {bound:g}",
        share >= bound,
        ", ".join(f"{each:.2f}" for each in rounds),
        all(each >= bound for each in rounds),
    )


def _waits(ours: Record, peer: Record) -> Iterator[Verdict]:
    for name in LATENCIES:
        mine, theirs = summary(ours, name), summary(peer, name)
        if mine is None or theirs is None:
            continue
        pairs = _pairs(ours, peer, name)
        yield Verdict(
            f"start latency {name} beside {peer['title']}",
            f"{mine['median']:.1f} ms",
            f"below {theirs['median']:.1f} ms",
            mine["median"] < theirs["median"],
            ", ".join(f"{first:.1f} against {second:.1f}" for first, second in pairs),
            all(first < second for first, second in pairs),
        )


def _pairs(ours: Record, peer: Record | None, name: str) -> list[tuple[float, float]]:
    """Round by round, where both have the number."""
    rounds = zip(ours["repeats"], peer["repeats"] if peer else [], strict=False)
    both = [(mine.get(name), theirs.get(name)) for mine, theirs in rounds]
    return [(first, second) for first, second in both if first is not None and second is not None]
