"""What a picture and a table are made of: points, percentiles, times under fault."""

from collections.abc import Iterable, Sequence

from chaos.records import Fault


def windows(faults: Iterable[Fault]) -> list[tuple[float, float]]:
    """The times under fault, in order, overlapping ones made one."""
    merged: list[tuple[float, float]] = []
    for began, ended in sorted((fault.began, fault.ended) for fault in faults):
        if merged and began <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(ended, merged[-1][1]))
        else:
            merged.append((began, ended))
    return merged


def percentiles(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {"count": 0}
    ordered = sorted(values)
    last = len(ordered) - 1
    named = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
    shares = {name: round(ordered[min(last, int(last * part + 0.5))], 4) for name, part in named.items()}
    return {"count": len(ordered), **shares}
