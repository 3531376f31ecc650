"""A pretended run that kills three workers, then three processes of its own, and is given up; and what may be wrong."""

import copy
from typing import Any

from chaos.check.poison import CRASHES, WORKERS
from chaos.oracle import seconds
from chaos.records import POISON, Fault, Outcome, Phase
from chaos.synthetic.calls import body_for
from chaos.synthetic.execution import Plan, attempt_row, new_run, record
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import BEGIN, BOUNDS, TENANTS, World, rfc3339

SLOT = 9
"""A worker that nobody else is at: all would fall with it."""


def poisoned(world: World) -> None:
    tenant, at = world.dice.choice(TENANTS), BEGIN + 310 + world.between(0, 5)
    body = body_for(world, tenant, Plan(), handler=POISON)
    run = new_run(world, tenant, None, at + 0.03, body["payload"])
    world.operation("createRun", tenant, at, Outcome.OK, body=body, answer={"runId": run["id"]}, status=201)
    rows: list[dict[str, Any]] = []
    made = began = at + 0.03
    for death in range(WORKERS + CRASHES):
        fence, boot, beside = next(world.fences), f"w{SLOT}.{min(death, WORKERS)}", death < WORKERS
        began += 0.2
        told = {"attempt": len(rows) + 1, "fence": fence, "worker": boot, "nonce": f"n{fence}", "isolated": not beside}
        world.effect(Phase.START, began, run, **told)
        ended = began + (BOUNDS.lease + 1.0 if beside else 0.3)
        if beside:
            fell = Fault(kind="poison", target=f"worker-{SLOT}", began=began, ended=began + 0.5, workers=[boot])
            world.faults.append(fell)
        if death:  # that it had begun the first time nobody had noted
            rows.append(attempt_row(run, len(rows) + 1, "lost", began, ended, boot, fence))
        began = ended
    world.attempts[tenant] += rows
    record(world, run, made, made, "failed", began, len(rows))


def _poison(it: Surgery) -> Row:
    handed_in = (name for name, each in it.submissions().items() if (each.body or {}).get("handler") == POISON)
    name = next(handed_in)
    return next(row for row in it.runs() if row["runId"] == name)


@plant("S7 kills one worker after the other")
def _(it: Surgery) -> None:
    next(each for each in it.effects(_poison(it), Phase.START) if each.isolated).isolated = False


@plant("S7 crashes, and is not given up")
def _(it: Surgery) -> None:
    run = _poison(it)
    last, row = it.effects(run, Phase.START)[-1], it.attempts(run)[-1]
    twin = copy.copy(last)
    twin.at, twin.fence, twin.nonce, twin.attempt = last.at + 2, last.fence + 100_000, "again", last.attempt + 1
    it.add(twin)
    times = {name: rfc3339(seconds(row[name]) + 2) for name in ("startedAt", "finishedAt")}
    it.dump.attempts[it.tenant_of(run)].append({**row, **times, "fence": twin.fence, "attempt": row["attempt"] + 1})
    run |= {"attempts": run["attempts"] + 1, "finishedAt": times["finishedAt"]}
