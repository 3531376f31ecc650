"""How pretended workers carry out runs: with failures, time-outs, deaths, zombies and hand-backs."""

from typing import Any, Final, NamedTuple

from chaos.records import SNOOZE, Phase, digest
from chaos.synthetic.world import BOUNDS, SLOTS, World, rfc3339

STALLED: Final = 0.5
"""Seconds that a run may take which is to run into its time-out."""
UNCOUNTED: Final = frozenset({"released", "snoozed"})


class Plan(NamedTuple):
    """What a run's handler does."""

    takes: float = 0.03
    fails: int = 0
    snoozes: int = 0
    """Times that it asks to be called again later; no attempt is spent."""
    stalls: int = 0
    """Attempts that run into their time-out."""
    max_retries: int = 3
    http: bool = False
    key: str | None = None
    at_most_once: bool = False
    slot: int | None = None
    isolated: bool = False


class Ended(NamedTuple):
    status: str
    at: float


def new_run(world: World, tenant: str, job: str | None, scheduled: float, payload: Any) -> dict[str, Any]:
    return {
        "id": world.number("run"),
        "tenant": tenant,
        "job": job,
        "scheduled": round(scheduled, 6),
        "digest": digest(payload),
    }


def carry_out(world: World, run: dict[str, Any], made: float, due: float, plan: Plan, *, turn: float = 0.0) -> Ended:
    """Execute a run to its end and put it on record; `turn`: when others have left their place to it."""
    rows: list[dict[str, Any]] = []
    at = world.available(max(made, due, turn) + world.between(0.005, 0.2))
    while True:
        status, at = _attempt(world, run, rows, at, plan)
        if status != "again":
            break
        plan = plan._replace(slot=None)  # another worker takes it up
    world.attempts[run["tenant"]] += rows
    record(world, run, made, due, status, at, sum(row["status"] not in UNCOUNTED for row in rows))
    return Ended(status, at)


def record(
    world: World, run: dict[str, Any], made: float, due: float, status: str, ended: float | None, attempts: int
) -> None:
    world.runs[run["tenant"]].append(
        {
            "runId": run["id"],
            "jobId": run["job"],
            "status": status,
            "state": status,
            "scheduledAt": rfc3339(run["scheduled"]),
            "dueAt": rfc3339(due),
            "createdAt": rfc3339(made),
            "startedAt": None,
            "finishedAt": rfc3339(ended),
            "attempts": attempts,
            "workerId": None,
        }
    )


def attempt_row(
    run: dict[str, Any], number: int, status: str, began: float, ended: float, boot: str, fence: int
) -> dict[str, Any]:
    return {
        "runId": run["id"],
        "jobId": run["job"],
        "attempt": number,
        "status": status,
        "scheduledAt": rfc3339(run["scheduled"]),
        "startedAt": rfc3339(began),
        "finishedAt": rfc3339(ended),
        "workerId": f"wrk_{boot}",
        "fence": fence,
    }


def _attempt(world: World, run: dict[str, Any], rows: list[dict[str, Any]], at: float, plan: Plan) -> tuple[str, float]:
    spent = sum(row["status"] not in UNCOUNTED for row in rows)
    slot, fence = _slot(world, at, plan), next(world.fences)
    boot, nonce = world.boot(slot, at), f"n{fence}"
    told = {
        "attempt": spent + 1,
        "fence": fence,
        "worker": "" if plan.http else boot,
        "nonce": nonce,
        "concurrency_key": plan.key,
        "isolated": plan.isolated,
    }

    def on_record(status: str, ended: float) -> None:
        rows.append(attempt_row(run, spent + 1, status, at, ended, boot, fence))

    world.effect(Phase.START, at, run, **told)
    end = at + plan.takes
    fault = world.struck(slot, at, end)
    if fault is not None and fault.kind == "stop" and fault.ended - fault.began < BOUNDS.lease:
        end, fault = fault.ended + 0.1, None  # it goes on where it was held, and still has its lease
    if fault is not None:
        return _interrupted(world, run, fault, told, plan, on_record, at)
    if sum(row["status"] == "snoozed" for row in rows) < plan.snoozes:
        settled = world.available(end + 0.01)
        on_record("snoozed", settled)
        return "again", settled + SNOOZE + world.between(0.01, 0.5)
    if spent < plan.fails + plan.stalls:
        stalls = spent >= plan.fails
        if not stalls:
            world.effect(Phase.END, end, run, failed=True, **told)
        settled = world.available(at + STALLED if stalls else end + 0.01)
        on_record("timed_out" if stalls else "failed", settled)
        return ("failed", settled) if spent >= plan.max_retries else ("again", settled + world.between(0.2, 2))
    world.effect(Phase.END, end, run, **told)
    settled = world.available(end + 0.01)
    on_record("completed", settled)
    return "completed", settled


def _interrupted(
    world: World, run: dict[str, Any], fault: Any, told: dict[str, Any], plan: Plan, on_record: Any, began: float
) -> tuple[str, float]:
    if fault.kind == "rollingRestart":
        on_record("released", fault.began + 0.1)
        return "again", fault.began + 0.5
    if (
        fault.kind == "partition" and plan.takes > BOUNDS.lease
    ):  # stopped before the lease ended, and taken from it when it had
        world.effect(Phase.BEAT, fault.began + 11.5, run, **told)
    reaped = fault.began + BOUNDS.lease + world.between(0.5, 3)
    if plan.at_most_once:
        on_record("unknown", reaped)
        return "failed", reaped
    if fault.began - began > 0.05:  # sooner than that it had not been noted that it began
        on_record("lost", reaped)
    if fault.kind == "stop" and plan.key is None and not plan.isolated:
        world.effect(Phase.END, fault.ended + 0.2, run, **told)  # a zombie: what it reports is not taken
    return "again", reaped + world.between(0.05, 1)


def _slot(world: World, at: float, plan: Plan) -> int:
    if plan.slot is not None:
        return plan.slot
    free = [slot for slot in range(SLOTS) if world.struck(slot, at - 0.5, at) is None]
    return world.dice.choice(free)
