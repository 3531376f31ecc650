"""Which measures miss their targets; such a finding is told, and is no violation of safety."""

from collections.abc import Iterator
from typing import Any, Final

from chaos.check.finding import Finding

QUIET_P99: Final = 1.0
FAIR: Final = 0.9
"""Jain's index; of two tenants one then has less than twice what the other gets for the same weight."""
ANSWERED: Final = 0.999


def missed_targets(measures: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    late = measures["L1"]["quiet"].get("p99", 0.0)
    if late > QUIET_P99:
        yield _miss("L1", "p99 of lateness in quiet times, in seconds", late, QUIET_P99)
    for name, numbers in measures["L2"]["promised"].items():
        if numbers.get("worst", 0.0) > numbers["bound"]:
            yield _miss("L2", f"{name}, in seconds", numbers["worst"], numbers["bound"])
    if measures["L3"]["running"] or measures["L3"]["behind"]:
        numbers = {"running": measures["L3"]["running"], "behind": measures["L3"]["behind"]}
        yield Finding(check="L3", rule="stuck", message="something is stuck", numbers=numbers)
    if measures["L4"].get("jain", 1.0) < FAIR:
        yield _miss("L4", "Jain's index of shares under saturation", measures["L4"]["jain"], FAIR)
    if measures["L5"]["quiet"]:
        yield _miss("L5", "duplicates in quiet times", measures["L5"]["quiet"], 0)
    if measures["L6"]["answered"] < ANSWERED:
        yield _miss("L6", "share of answered calls", measures["L6"]["answered"], ANSWERED)


def unmeasured(measures: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What has a target and was not measured: that nothing was missed there says nothing."""
    if not measures["L1"]["quiet"]["count"]:
        yield "L1 lateness in quiet times: there were none"
    for name, numbers in measures["L2"]["promised"].items():
        if not numbers["cases"]:
            yield f"L2 {name}: there was no case"
    if not measures["L4"]["saturated slots"]:
        yield "L4 fair shares: never did two tenants have a backlog for ten seconds"
    if not measures["L6"]["calls"]:
        yield "L6 availability: nobody called"


def _miss(check: str, what: str, value: float, target: float) -> Finding:
    message = f"{what}: {value:.4g}, and {target:g} is the target"
    return Finding(check=check, rule="target", message=message, numbers={"value": value, "target": target})
