"""Pretended graphs: one goes well, one is blocked behind a failure, and one goes on after a replay."""

from typing import Any

from chaos.oracle import seconds
from chaos.records import Outcome
from chaos.synthetic.execution import Ended, Plan, carry_out, new_run, record
from chaos.synthetic.jobs import as_shown
from chaos.synthetic.oddities import replay
from chaos.synthetic.world import BEGIN, TARGET, TENANTS, World, rfc3339

ON_THE_WEB = frozenset({"left", "join"})
"""Those of its jobs that are HTTP targets."""
EDGES: dict[str, list[Any]] = {
    "top": [],
    "left": ["top"],
    "right": ["top"],
    "join": ["left", "right"],
    "alarm": [{"job": "left", "when": "failed"}],
    "after": [{"job": "left", "when": "done"}, "right"],
}


def _need(written: str | dict[str, str]) -> dict[str, str]:
    return {"job": written, "when": "success"} if isinstance(written, str) else written


def graphs(world: World) -> None:
    graph = _Graph(world, world.dice.choice(TENANTS))
    for turn, fate in enumerate(("well", "blocked", "replayed")):
        graph.start(BEGIN + 430 + 20.0 * turn, fate)


class _Graph:
    def __init__(self, world: World, tenant: str) -> None:
        self._world, self._tenant = world, tenant
        bodies = [
            {
                "name": name,
                "key": name,
                "handler": TARGET if name in ON_THE_WEB else "quick",
                "payload": {"node": name},
                "maxRetries": 0,
                "dependsOn": needs,
            }
            for name, needs in EDGES.items()
        ]
        self._jobs = {name: world.number("job") for name in EDGES}
        answer = {"jobIds": list(self._jobs.values())}
        world.operation("createJobs", tenant, BEGIN + 5, Outcome.OK, body={"jobs": bodies}, answer=answer)
        for name, body in zip(EDGES, bodies, strict=True):
            shown = {"jobId": self._jobs[name], "tenant": tenant, "status": "pending", "scheduleType": "on_demand"}
            made = {"createdAt": rfc3339(BEGIN + 5.03), "version": 1, "nextRunAt": None}
            needs = [{"job": self._jobs[need["job"]], "when": need["when"]} for need in map(_need, EDGES[name])]
            world.jobs[tenant].append({**as_shown(body), "dependsOn": needs, **shown, **made})

    def start(self, at: float, fate: str) -> None:
        runs = {name: new_run(self._world, self._tenant, job, at, {"node": name}) for name, job in self._jobs.items()}
        answer = {"runId": runs["top"]["id"]}
        self._world.operation(
            "runJob", self._tenant, at - 0.03, Outcome.OK, job=self._jobs["top"], body={}, answer=answer
        )
        top = self._run(runs["top"], at, at)
        left = self._run(runs["left"], at, top.at, Plan(fails=int(fate != "well"), max_retries=0, http=True))
        died = self._world.runs[self._tenant][-1]
        right = self._run(runs["right"], at, top.at, Plan(takes=0.5))
        both = max(left.at, right.at)
        self._run(runs["after"], at, both)
        if fate == "well":
            record(self._world, runs["alarm"], at, at, "skipped", left.at, 0)
        else:
            self._run(runs["alarm"], at, left.at)
        if fate == "blocked":
            record(self._world, runs["join"], at, at, "pending", None, 0)
            return
        if fate == "replayed":
            replay(self._world, self._tenant, runs["left"], died, at - BEGIN + 5, 1)
            both = seconds(died["finishedAt"])
        self._run(runs["join"], at, both, Plan(http=True))

    def _run(self, run: dict[str, Any], made: float, free: float, plan: Plan | None = None) -> Ended:
        """Carried out when its parents have ended."""
        return carry_out(self._world, run, made, made, plan or Plan(), turn=free + 0.02)
