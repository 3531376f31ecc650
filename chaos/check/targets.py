"""Which measures miss their targets; such a finding is told, and is no violation of safety."""

from collections.abc import Iterator
from typing import Any, Final

from chaos.check.finding import Finding

QUIET_P99: Final = 1.0
WORKER_KILL: Final = 20.0
DATABASE_BACK: Final = 5.0
ANSWERED: Final = 0.999


def missed_targets(measures: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    late = measures["L1"]["quiet"].get("p99", 0.0)
    if late > QUIET_P99:
        yield _miss("L1", "quiet p99", late, QUIET_P99)
    for name, numbers in measures["L2"].items():
        if name == "kill worker" and numbers.get("restart", 0.0) > WORKER_KILL:
            yield _miss("L2", f"restart after {name}", numbers["restart"], WORKER_KILL)
        if name.startswith("postgres") and numbers.get("first start", 0.0) > DATABASE_BACK:
            yield _miss("L2", f"first start after {name}", numbers["first start"], DATABASE_BACK)
    if measures["L3"]["running"] or measures["L3"]["behind"]:
        numbers = {"running": measures["L3"]["running"], "behind": measures["L3"]["behind"]}
        yield Finding(check="L3", rule="stuck", message="something is stuck", numbers=numbers)
    if measures["L5"]["quiet"]:
        yield _miss("L5", "duplicates in quiet times", measures["L5"]["quiet"], 0)
    if measures["L6"]["answered"] < ANSWERED:
        yield _miss("L6", "answered calls", measures["L6"]["answered"], ANSWERED)


def _miss(check: str, what: str, value: float, target: float) -> Finding:
    message = f"{what}: {value:.3f}, and {target:g} is the target"
    return Finding(check=check, rule="target", message=message, numbers={"value": value, "target": target})
