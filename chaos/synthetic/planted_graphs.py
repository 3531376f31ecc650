"""Planted faults of graphs: begun too early, in spite of a failure, twice, never, or left out without need."""

from chaos.oracle import seconds
from chaos.records import Phase
from chaos.synthetic.surgery import Row, Surgery, plant


def _well(it: Surgery) -> dict[str, Row]:
    """The runs of a graph in which everything went well, by the names of their jobs."""
    names = {row["jobId"]: row["name"] for row in it.jobs()}
    graphs: dict[str, dict[str, Row]] = {}
    for row in it.runs():
        if names.get(row["jobId"]) in {"top", "left", "right", "join", "alarm", "after"}:
            graphs.setdefault(row["scheduledAt"], {})[names[row["jobId"]]] = row
    return next(graph for graph in graphs.values() if graph["alarm"]["status"] == "skipped")


@plant("S22 began before its parents had succeeded")
def _(it: Surgery) -> None:
    graph = _well(it)
    it.effects(graph["join"], Phase.START)[0].at = seconds(graph["right"]["finishedAt"]) - 0.2
    it.sort()


@plant("S22 began although its parent had failed")
def _(it: Surgery) -> None:
    left = _well(it)["left"]
    left["status"] = it.attempts(left)[0]["status"] = "failed"
    it.effects(left, Phase.END)[0].failed = True


@plant("S22 joined twice")
def _(it: Surgery) -> None:
    it.copy(_well(it)["join"], "run_twin", 0.5)


@plant("S22 never joined")
def _(it: Surgery) -> None:
    it.erase(_well(it)["join"])


@plant("S22 left out without need")
def _(it: Surgery) -> None:
    join = _well(it)["join"]
    it.forget(join, row=False, phases=tuple(Phase))
    join |= {"status": "skipped", "attempts": 0}
