"""Pretended odd things: dead letters that come back, snoozes, effects in a transaction, a paused queue."""

from typing import Any

from chaos.records import BOOKING, SIDE, Outcome
from chaos.synthetic.calls import body_for, submit
from chaos.synthetic.execution import Plan, carry_out, new_run
from chaos.synthetic.world import BEGIN, BOUNDS, TENANTS, World, rfc3339


def letters(world: World) -> None:
    """Replayed by hand and by a filter, once and twice, with success or without; discarded; and a call that failed."""
    for tenant in TENANTS:
        for turn, (fails, replays) in enumerate(((1, 1), (9, 2), (9, 0), (9, 1), (1, 1))):
            at = 410 + 14.0 * turn + world.between(0, 3)
            plan = Plan(fails=fails, max_retries=0, at_most_once=turn == 4)
            name = f"letters{turn}"
            run, row = _hand_in(world, tenant, BEGIN + at, plan, handler=name)
            for number in range(replays):
                at += 4.0
                replay(world, tenant, run, row, at, fails, by_filter=name if number == 1 else None)
            if fails == 9 and replays < 2:
                _discard(world, tenant, row, at + 5.0, by_filter=name if replays == 1 else None)
    refused = {"body": {"runIds": [world.number("run")]}, "status": 404}
    world.operation("replayLetters", TENANTS[0], BEGIN + 420, Outcome.FAIL, **refused)


def _hand_in(world: World, tenant: str, at: float, plan: Plan, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """An answered call, carried out to its end: the run, and what the product says of it."""
    body = body_for(world, tenant, plan, **more)
    run = new_run(world, tenant, None, at + 0.03, body["payload"])
    world.operation("createRun", tenant, at, Outcome.OK, body=body, answer={"runId": run["id"]}, status=201)
    carry_out(world, run, at + 0.03, at + 0.03, plan)
    return run, world.runs[tenant][-1]


def replay(
    world: World,
    tenant: str,
    run: dict[str, Any],
    row: dict[str, Any],
    at: float,
    fails: int,
    *,
    by_filter: str | None = None,
) -> None:
    """The same run goes on, and its attempts count on; `by_filter`: for this handler, and not by hand."""
    _decide(world, tenant, row, "replayed", BEGIN + at, by_filter=by_filter)
    world.runs[tenant].remove(row)
    spent = row["attempts"]
    begun = BEGIN + at + world.between(0.1, 0.3)
    before = {name: row[name] for name in ("createdAt", "scheduledAt")}
    still = fails > spent
    carry_out(world, run, begun, begun, Plan(fails=int(still), max_retries=0))
    new = world.runs[tenant].pop()
    for each in world.attempts[tenant][-new["attempts"] :]:
        each["attempt"] += spent
    for effect in world.effects:
        if effect.run == run["id"] and effect.at >= begun:
            effect.attempt += spent
    row |= {**new, **before, "attempts": spent + new["attempts"], "state": "dead" if still else "completed"}
    world.runs[tenant].append(row)


def _discard(world: World, tenant: str, row: dict[str, Any], at: float, *, by_filter: str | None) -> None:
    _decide(world, tenant, row, "discarded", BEGIN + at, by_filter=by_filter)
    row["state"] = "discarded"


def _decide(world: World, tenant: str, row: dict[str, Any], deed: str, at: float, *, by_filter: str | None) -> None:
    kind, by = "replayLetters" if deed == "replayed" else "discardLetters", "hand"
    if by_filter:
        by = world.number("op")
        answer: dict[str, Any] = {"runIds": [], "refused": [], "operation": {"operationId": by}}
        body: dict[str, Any] = {"filter": {"handler": by_filter}}
        world.operation(kind, tenant, at - 0.5, Outcome.OK, body=body, answer=answer, key=world.number("key"))
    elif deed == "replayed" and world.dice.random() < 0.5:
        world.operation("retryRun", tenant, at - 0.03, Outcome.OK, run=row["runId"], answer={"runId": row["runId"]})
    else:
        body = {"runIds": [row["runId"]]}
        world.operation(kind, tenant, at - 0.03, Outcome.OK, body=body, answer={**body}, key=world.number("key"))
    told = {"deed": deed, "at": at, "attempts": row["attempts"], "by": by}
    world.decided.setdefault(row["runId"], []).append(told)


def snoozes(world: World) -> None:
    for at in (420.0, 440.0):
        submit(world, at + world.between(0, 5), Plan(snoozes=world.dice.randint(1, 3)), handler="snoozing")


def bookings(world: World) -> None:
    """Of an attempt that was lost or failed nothing stays; of the one that succeeded one row."""
    kill = next(fault for fault in world.faults if fault.kind == "kill" and fault.workers)
    for turn, (plan, at) in enumerate(
        (
            (Plan(takes=1), BEGIN + 450),
            (Plan(fails=1), BEGIN + 455),
            (Plan(fails=9, max_retries=0), BEGIN + 460),
            (Plan(takes=6, slot=int(kill.target[-1])), kill.began - 0.5),
        )
    ):
        run, row = _hand_in(world, world.dice.choice(TENANTS), at, plan, handler=BOOKING[turn % 2])
        if row["status"] == "completed":
            world.booked[run["id"]] = [max(each.fence for each in world.effects if each.run == run["id"])]


def paused_queue(world: World) -> None:
    """A pause that holds after a lease; what comes meanwhile waits until the queue is resumed."""
    tenant, paused = TENANTS[0], BEGIN + 480
    holds, resumed = paused + BOUNDS.lease, paused + BOUNDS.lease + 12
    for at in (paused - 3, paused + 2, holds + 4):
        body = body_for(world, tenant, Plan(), queue=SIDE)
        run = new_run(world, tenant, None, at + 0.03, body["payload"])
        world.operation("createRun", tenant, at, Outcome.OK, body=body, answer={"runId": run["id"]}, status=201)
        carry_out(world, run, at + 0.03, at + 0.03 if at < paused else resumed + 0.1, Plan())
    answer = {"name": SIDE, "pausedAt": rfc3339(paused + 0.02), "holdsBy": rfc3339(paused + 0.02 + BOUNDS.lease)}
    world.operation("pauseQueue", tenant, paused, Outcome.OK, answer=answer)
    world.operation(
        "resumeQueue", tenant, resumed, Outcome.OK, answer={"name": SIDE, "pausedAt": None, "holdsBy": None}
    )


def stopped_at_its_lease(world: World) -> None:
    """Cut off for longer than a lease, a worker stops what it must not go on with, and hands it back when it can."""
    cut = next(fault for fault in world.faults if fault.kind == "partition")
    plan = Plan(takes=25, slot=int(cut.target[-1]))
    submit(world, cut.began - BEGIN - 0.5, plan, handler="patient", onDisconnect="stop")


def inside(world: World) -> None:
    """Runs of callers' own transactions: committed, rolled back, and two whose commit nobody answered."""
    for outcome, happened in (
        (Outcome.OK, True),
        (Outcome.FAIL, False),
        (Outcome.UNKNOWN, True),
        (Outcome.UNKNOWN, False),
    ):
        tenant, at = world.dice.choice(TENANTS), BEGIN + world.between(410, 500)
        body = body_for(world, tenant, Plan())
        run = new_run(world, tenant, None, at + 0.03, body["payload"])
        world.operation("submitInside", tenant, at, outcome, body=body, answer={"runId": run["id"]})
        if happened:
            carry_out(world, run, at + 0.03, at + 0.03, Plan())
    world.operation("weighTenant", TENANTS[0], BEGIN + 400, Outcome.OK, body={"weight": 3})
