"""Pretended submissions: answered, unanswered, repeated under one key, in batches, under limits, with callbacks."""

from typing import Any

from chaos.oracle import MICRO
from chaos.records import CROWD, CROWDED, Outcome, digest
from chaos.synthetic.execution import STALLED, Ended, Plan, carry_out, new_run
from chaos.synthetic.jobs import Pretended
from chaos.synthetic.world import BEGIN, TARGET, TENANTS, World, rfc3339


def submit(world: World, at: float, plan: Plan, **more: Any) -> Ended:
    """One answered ad-hoc run `at` seconds after the beginning."""
    tenant, invoked = world.dice.choice(TENANTS), BEGIN + at
    body = body_for(world, tenant, plan, **more)
    due = invoked + 0.03
    if (run_at := more.get("runAt")) is not None:
        due = run_at
        body["runAt"] = rfc3339(run_at)
    run = new_run(world, tenant, None, due, body["payload"])
    world.operation("createRun", tenant, invoked, Outcome.OK, body=body, answer={"runId": run["id"]}, status=201)
    ended = carry_out(world, run, invoked + 0.03, due, plan)
    if ended.status in more.get("callback", {}).get("events", ()):
        message = {"id": world.number("msg"), "at": ended.at + 0.2, "tenant": tenant, "run": run["id"]}
        receipt = {**message, "event": ended.status, "body": digest(run["id"])}
        world.webhooks += [receipt, {**receipt, "at": ended.at + 3}]  # a message may come twice, if it is the same
    return ended


def body_for(world: World, tenant: str, plan: Plan, **more: Any) -> dict[str, Any]:
    handler = TARGET if plan.http else "quick"
    body = {"handler": handler, "payload": {"tenant": tenant, "serial": world.number("act")}, **more}
    if plan.max_retries != 3:
        body["maxRetries"] = plan.max_retries
    if plan.stalls:
        body["timeoutSeconds"] = STALLED
    if plan.at_most_once:
        body["delivery"] = "atMostOnce"
    return body


def submit_batch(world: World, at: float, count: int) -> None:
    tenant, invoked = world.dice.choice(TENANTS), BEGIN + at
    bodies = [body_for(world, tenant, Plan()) for _ in range(count)]
    runs = [new_run(world, tenant, None, invoked + 0.03, body["payload"]) for body in bodies]
    answer = {"runIds": [run["id"] for run in runs]}
    world.operation("createRuns", tenant, invoked, Outcome.OK, body={"runs": bodies}, answer=answer, status=201)
    for run in runs:
        carry_out(world, run, invoked + 0.03, invoked + 0.03, Plan())


def submit_unanswered(world: World, at: float, *, happened: bool, repeated: bool) -> None:
    """A call whose answer was lost; under a key it is repeated until there is one."""
    tenant, invoked = world.dice.choice(TENANTS), BEGIN + at
    key = world.number("key") if repeated else None
    body = body_for(world, tenant, Plan())
    world.operation("createRun", tenant, invoked, Outcome.UNKNOWN, body=body, key=key)
    made = invoked + (0.03 if happened else 11.03)
    if happened or repeated:
        run = new_run(world, tenant, None, made, body["payload"])
        carry_out(world, run, made, made, Plan())
        for again in (invoked + 11, invoked + 12) if repeated else ():
            answer = {"runId": run["id"]}
            world.operation("createRun", tenant, again, Outcome.OK, body=body, key=key, answer=answer, status=201)


def submit_limited(world: World, at: float, limit: int, count: int, plan: Plan) -> None:
    """Runs of one key that are all handed in at once, and carried out at most `limit` at a time, in order."""
    tenant, invoked, key = world.dice.choice(TENANTS), BEGIN + at, world.number("account")
    free = [0.0] * limit
    for index in range(count):
        own = plan._replace(key=key) if index == 0 else plan._replace(key=key, slot=None)
        body = body_for(world, tenant, own, concurrency={"limit": limit, "key": "payload.account"})
        made = invoked + index * 0.1 + 0.03
        run = new_run(world, tenant, None, made, body["payload"])
        answer = {"runId": run["id"]}
        world.operation("createRun", tenant, made - 0.03, Outcome.OK, body=body, answer=answer, status=201)
        turn = free.index(min(free))
        free[turn] = carry_out(world, run, made, made, own, turn=free[turn] + 0.06).at


def submit_crowd(world: World, at: float, count: int) -> None:
    """More of one tenant than may go at once."""
    invoked, free = BEGIN + at, [0.0] * CROWD
    for index in range(count):
        plan = Plan(takes=world.between(0.5, 1.5), http=index % 3 == 2)
        body = body_for(world, CROWDED, plan)
        run = new_run(world, CROWDED, None, invoked + 0.03, body["payload"])
        world.operation("createRun", CROWDED, invoked, Outcome.OK, body=body, answer={"runId": run["id"]}, status=201)
        turn = free.index(min(free))
        free[turn] = carry_out(world, run, invoked + 0.03, invoked + 0.03, plan, turn=free[turn] + 0.06).at


def run_in_turn(world: World, job: Pretended, at: float, limit: int, count: int) -> None:
    """Runs by hand of a job that lets only so many go at once."""
    invoked, free = BEGIN + at, [0.0] * limit
    for index in range(count):
        made = invoked + 0.1 * index + 0.03
        run = new_run(world, job.tenant, job.id, made, job.body["payload"])
        answer = {"runId": run["id"]}
        world.operation("runJob", job.tenant, made - 0.03, Outcome.OK, job=job.id, body={}, answer=answer)
        turn = free.index(min(free))
        free[turn] = carry_out(world, run, made, made, Plan(takes=1), turn=free[turn] + 0.06).at


def backfill(world: World, job: Pretended, at: float, first: float, last: float, reprocess: str = "none") -> None:
    """Make up for the instants of a past range, one after the other."""
    invoked = BEGIN + at
    range_ = {"from": rfc3339(BEGIN + first), "until": rfc3339(BEGIN + last)}
    body = {**range_, "reprocess": reprocess, "concurrency": 1, "order": "oldest"}
    name, made = world.number("op"), list[str]()
    progress = {"total": 0, "skipped": 0}
    answer = {"operationId": name, "jobId": job.id, "progress": progress}
    world.operation("backfillJob", job.tenant, invoked, Outcome.OK, job=job.id, body=body, answer=answer)
    world.backfilled.setdefault(job.id, {})[name] = made
    free = invoked + 0.1
    had = {row["scheduledAt"] for row in world.runs[job.tenant] if row["jobId"] == job.id}
    for instant in job.standings[-1][1].definition.nominal(BEGIN + first, BEGIN + last):
        progress["total"] += 1
        progress["skipped"] += reprocess != "all" and rfc3339(instant / MICRO) in had
        if reprocess == "all" or rfc3339(instant / MICRO) not in had:
            run = new_run(world, job.tenant, job.id, instant / MICRO, job.body["payload"])
            made.append(run["id"])
            free = carry_out(world, run, free, free, Plan()).at + 0.05


def run_by_hand(world: World, job: Pretended, at: float, *, answered: bool, happened: bool) -> None:
    invoked = BEGIN + at
    outcome = Outcome.OK if answered else Outcome.UNKNOWN
    run = new_run(world, job.tenant, job.id, invoked + 0.03, job.body["payload"])
    answer = {"runId": run["id"]} if answered else None
    world.operation("runJob", job.tenant, invoked, outcome, job=job.id, body={}, answer=answer)
    if happened:
        carry_out(world, run, invoked + 0.03, invoked + 0.03, Plan())
