"""Pretended commands, which leave somebody behind for the worker to end, and a job that wants only its newest run."""

from typing import Any

import msgspec

from chaos.records import Outcome, Phase
from chaos.synthetic.calls import body_for, submit
from chaos.synthetic.cancels import cancel
from chaos.synthetic.execution import Plan, attempt_row, carry_out, new_run, record
from chaos.synthetic.jobs import Pretended
from chaos.synthetic.world import BEGIN, TENANTS, World, rfc3339
from chaos.timeline import Standing

COMMAND: dict[str, Any] = {"type": "command", "argv": ["/usr/bin/report"]}
PERIOD = 11.0
TIME = 2.0
"""Seconds that an attempt takes, and that one of them may take at most."""


def commands(world: World) -> None:
    for turn, (status, plan) in enumerate(
        (
            ("completed", Plan()),
            ("completed", Plan(at_most_once=True)),
            ("failed", Plan(max_retries=0)),
            ("cancelled", Plan()),
        )
    ):
        tenant, at = world.dice.choice(TENANTS), BEGIN + 412 + 20.0 * turn + world.between(0, 5)
        body = body_for(world, tenant, plan, handler=COMMAND)
        body["payload"]["leaves"] = True
        if status == "failed":
            body["timeoutSeconds"] = TIME
        run = new_run(world, tenant, None, at + 0.03, body["payload"])
        world.operation("createRun", tenant, at, Outcome.OK, body=body, answer={"runId": run["id"]}, status=201)
        _carry_out(world, run, at + 0.1, status)
    kill = next(fault for fault in world.faults if fault.kind == "kill" and fault.workers)
    submit(world, kill.began - BEGIN - 1, Plan(takes=5, slot=int(kill.target[-1]), isolated=True), handler=COMMAND)


def _carry_out(world: World, run: dict[str, Any], at: float, status: str) -> None:
    """One attempt, and somebody whom it leaves behind and who is alive until its worker has ended all."""
    fence, boot, ended = next(world.fences), world.boot(0, at), at + TIME
    told = {"attempt": 1, "fence": fence, "worker": boot, "nonce": f"n{fence}", "isolated": True}
    world.effect(Phase.START, at, run, **told)
    if status == "completed":
        world.effect(Phase.END, ended - 0.2, run, **told)
    world.effect(Phase.BEAT, ended - 0.1, run, **told)
    how = {"failed": "timed_out"}.get(status, status)
    world.attempts[run["tenant"]].append(attempt_row(run, 1, how, at, ended, boot, fence))
    record(world, run, at - 0.07, at - 0.07, status, ended, 1)
    if status == "cancelled":
        cancel(world, run, at + 1.0, "running", None)


class _Newest(Pretended):
    """Each run would take for ever, and makes way for the next; the last one is through soon."""

    def _fire(self, standing: Standing, instants: list[float]) -> None:
        payload = msgspec.json.decode(dict(standing.body)["payload"])
        free = 0.0
        for at, following in zip(instants, [*instants[1:], None], strict=True):
            run, made = new_run(self.world, self.tenant, self.id, at, payload), at + 0.02
            if following is None:
                carry_out(self.world, run, made, at, Plan(takes=1), turn=free + 0.06)
            else:
                free = self._make_way(run, made, max(made, free) + 0.1, following + 0.5)
            self._list(at, "fired", None)

    def _make_way(self, run: dict[str, Any], made: float, began: float, ended: float) -> float:
        world = self.world
        fence, boot = next(world.fences), world.boot(0, began)
        told = {"attempt": 1, "fence": fence, "worker": boot, "nonce": f"n{fence}"}
        world.effect(Phase.START, began, run, **told)
        world.effect(Phase.BEAT, began + 0.5, run, **told)
        world.attempts[self.tenant].append(attempt_row(run, 1, "cancelled", began, ended, boot, fence))
        record(world, run, made, run["scheduled"], "cancelled", ended, 1)
        return ended


def newest(world: World) -> None:
    window = {"scheduleAt": rfc3339(BEGIN + 410), "endsAt": rfc3339(BEGIN + 410 + 4.5 * PERIOD)}
    body = {"every": f"PT{PERIOD:.0f}S", "overlap": "cancelPrevious", **window}
    _Newest(world, world.dice.choice(TENANTS), body, Plan()).finish()
