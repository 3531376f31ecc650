"""Pretended cancels: of what waits, of what runs, of what has just ended, and of what ends in spite of it."""

from typing import Any

from chaos.records import Outcome, Phase
from chaos.synthetic.calls import body_for
from chaos.synthetic.execution import Plan, attempt_row, carry_out, new_run, record
from chaos.synthetic.world import BEGIN, BOUNDS, TENANTS, World, rfc3339


def cancels(world: World) -> None:
    for turn, play in enumerate((_waiting, _between_attempts, _running, _over, _in_spite)):
        tenant, at = world.dice.choice(TENANTS), BEGIN + 405 + 9.0 * turn + world.between(0, 3)
        plan = Plan(takes=2)
        body = body_for(world, tenant, plan)
        run = new_run(world, tenant, None, at + 0.03, body["payload"])
        world.operation("createRun", tenant, at, Outcome.OK, body=body, answer={"runId": run["id"]}, status=201)
        play(world, run, at + 0.03)


def cancel(world: World, run: dict[str, Any], at: float, status: str, finished: float | None) -> None:
    answer: dict[str, Any] = {"runId": run["id"], "status": status, "finishedAt": rfc3339(finished)}
    if finished is None:
        answer |= {"cancelRequestedAt": rfc3339(at), "stopsBy": rfc3339(at + BOUNDS.lease + 5)}
    world.operation("cancelRun", run["tenant"], at - 0.03, Outcome.OK, run=run["id"], answer=answer)


def _waiting(world: World, run: dict[str, Any], at: float) -> None:
    record(world, run, at, at, "cancelled", at + 0.5, 0)
    cancel(world, run, at + 0.5, "cancelled", at + 0.5)


def _between_attempts(world: World, run: dict[str, Any], at: float) -> None:
    _begin(world, run, at, "failed", at + 0.4)
    record(world, run, at, at, "cancelled", at + 0.9, 1)
    cancel(world, run, at + 0.9, "cancelled", at + 0.9)


def _running(world: World, run: dict[str, Any], at: float) -> None:
    _begin(world, run, at, "cancelled", at + 0.7)
    record(world, run, at, at, "cancelled", at + 0.7, 1)
    cancel(world, run, at + 0.5, "running", None)


def _over(world: World, run: dict[str, Any], at: float) -> None:
    ended = carry_out(world, run, at, at, Plan()).at
    cancel(world, run, ended + 0.1, "completed", ended)


def _in_spite(world: World, run: dict[str, Any], at: float) -> None:
    ended = carry_out(world, run, at, at, Plan(takes=1)).at
    cancel(world, run, ended - 0.2, "running", None)


def _begin(world: World, run: dict[str, Any], at: float, status: str, ended: float) -> None:
    """One attempt that does not come to a good end."""
    fence, boot = next(world.fences), world.boot(0, at)
    told = {"attempt": 1, "fence": fence, "worker": boot, "nonce": f"n{fence}"}
    world.effect(Phase.START, at + 0.1, run, **told)
    world.effect(Phase.BEAT, at + 0.3, run, **told)
    if status == "failed":
        world.effect(Phase.END, ended - 0.01, run, failed=True, **told)
    world.attempts[run["tenant"]].append(attempt_row(run, 1, status, at + 0.1, ended, boot, fence))
