"""Pretended calls of an address that is denied, handlers that were told a secret, and keys used for something else."""

from typing import Any

from chaos.records import CONFIDED, CONFIDENCE, RATIONED, WHISPER, Outcome
from chaos.synthetic.execution import Plan, attempt_row, carry_out, new_run, record
from chaos.synthetic.world import BEGIN, FORBIDDEN, TENANTS, World


def outsiders(world: World) -> None:
    for part in (_forbidden, _confided, _reused):
        part(world)


def _forbidden(world: World) -> None:
    """It fails at once, and nobody has heard of it."""
    at = BEGIN + 480
    body = {"handler": FORBIDDEN, "payload": {"tenant": RATIONED, "serial": f"{WHISPER}{world.number('act')}"}}
    run = new_run(world, RATIONED, None, at + 0.03, body["payload"])
    world.operation("createRun", RATIONED, at, Outcome.OK, body=body, answer={"runId": run["id"]}, status=201)
    row = attempt_row(run, 1, "failed", at + 0.1, at + 0.12, world.boot(1, at), next(world.fences))
    world.attempts[RATIONED].append({**row, "errorMessage": "is denied", "errorClass": "refused"})
    record(world, run, at + 0.03, at + 0.03, "failed", at + 0.12, 1)


def _confided(world: World) -> None:
    """One that says it in its result, and one that does so in its error."""
    value = {"value": f"{CONFIDED}{world.number('secret')}"}
    world.operation("putSecret", TENANTS[1], BEGIN + 481, Outcome.OK, body=value, answer={"version": 1}, status=201)
    for plan in (Plan(), Plan(fails=1, max_retries=0)):
        payload = {"tenant": TENANTS[1], "serial": world.number("act"), "secret": {"$secret": CONFIDENCE}}
        body: dict[str, Any] = {"handler": "slow", "payload": payload, "maxRetries": plan.max_retries}
        at = BEGIN + 482
        run = new_run(world, TENANTS[1], None, at + 0.03, payload)
        world.operation("createRun", TENANTS[1], at, Outcome.OK, body=body, answer={"runId": run["id"]}, status=201)
        carry_out(world, run, at + 0.03, at + 0.03, plan)
    world.runs[TENANTS[1]][-2]["result"] = {"said": "[secret]"}
    world.runs[TENANTS[1]][-1]["errorMessage"] = "was told [secret]"


def _reused(world: World) -> None:
    tenant, at, key = TENANTS[0], BEGIN + 484, world.number("key")
    bodies = [
        {"handler": "slow", "payload": {"tenant": tenant, "serial": world.number("act")}} for _ in ("first", "other")
    ]
    run = new_run(world, tenant, None, at + 0.03, bodies[0]["payload"])
    answer = {"runId": run["id"]}
    world.operation("createRun", tenant, at, Outcome.OK, body=bodies[0], key=key, answer=answer, status=201)
    carry_out(world, run, at + 0.03, at + 0.03, Plan())
    world.operation("createRun", tenant, at + 1, Outcome.UNKNOWN, body=bodies[1], key=key)
    world.operation("createRun", tenant, at + 12, Outcome.FAIL, body=bodies[1], key=key, status=422)
    world.operation("createRun", tenant, at + 13, Outcome.OK, body=bodies[0], key=key, answer=answer, status=201)
