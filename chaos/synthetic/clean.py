"""A history in which everything happens that may happen, and nothing that may not."""

from collections.abc import Callable
from typing import Any, Final

from chaos.records import Evidence, Outcome
from chaos.synthetic.calls import (
    backfill,
    run_by_hand,
    run_in_turn,
    submit,
    submit_batch,
    submit_crowd,
    submit_limited,
    submit_unanswered,
)
from chaos.synthetic.cancels import cancels
from chaos.synthetic.commands import commands, newest
from chaos.synthetic.execution import Plan, carry_out, new_run, record
from chaos.synthetic.faces import faces
from chaos.synthetic.graphs import graphs
from chaos.synthetic.jobs import Change, Pretended
from chaos.synthetic.oddities import bookings, inside, letters, paused_queue, snoozes, stopped_at_its_lease
from chaos.synthetic.outsiders import outsiders
from chaos.synthetic.poison import poisoned
from chaos.synthetic.world import BEGIN, LENGTH, TARGET, TENANTS, World, rfc3339

FEW: Final = 0.1
"""The share of recurring jobs in a small history: with all of them, most of it is theirs."""


def clean(seed: int, share: float = 1.0) -> Evidence:
    """Correct by construction; the same for the same seed. `share`: of the recurring jobs that may be left out."""
    world = World(seed, share)
    for part in _PARTS:
        part(world)
    return world.evidence()


def _job(world: World, plan: Plan | None = None, *changes: Change, answered: bool = True, **body: object) -> Pretended:
    job = Pretended(world, world.dice.choice(TENANTS), body, plan or Plan(), answered=answered)
    for change in changes:
        job.change(change)
    job.finish()
    return job


def _recurring(world: World, plan: Plan | None = None, *changes: Change, answered: bool = True, **body: object) -> None:
    """One of those jobs that may be left out."""
    if world.takes():
        _job(world, plan, *changes, answered=answered, **body)


def _schedules(world: World) -> None:
    dice = world.dice
    _recurring(world, every="PT40S", overlap="allow")
    _recurring(world, Plan(http=True), every=60, overlap="allow", scheduleAt=rfc3339(BEGIN + world.between(8, 20)))
    zone = dice.choice(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"])
    _recurring(
        world, cronExpression=dice.choice(["* * * * *", "*/2 * * * *", "@hourly", "0-59/3 * * * *"]), timezone=zone
    )
    _recurring(world, Plan(fails=dice.randrange(2)), cronExpression="*/50 * * * * *", overlap="allow")
    _recurring(world, Plan(takes=9), every="PT8S", endsAt=rfc3339(BEGIN + 300))
    _recurring(world, every="PT11S", overlap="allow", endsAt=rfc3339(BEGIN + 340))
    _recurring(world, Plan(takes=world.between(0.01, 2)), every=dice.choice(["PT30S", 45, "PT0M40S"]))
    _recurring(world, every="PT25S", endsAt=rfc3339(BEGIN + world.between(300, 500)))
    _recurring(world, cronExpression="*/20 * * * * *", scheduleAt=rfc3339(BEGIN + world.between(100, 500)))


def _edits(world: World) -> None:
    at = world.between
    slower = {"every": "PT35S", "payload": {"new": at(0, 9)}}
    _recurring(world, None, Change(at(320, 450), "changeJob", slower), every="PT40S")
    _recurring(world, None, Change(at(320, 450), "changeJob", {"cronExpression": "*/20 * * * * *"}), every="PT40S")
    _recurring(world, None, Change(420, "pauseJob"), Change(500, "resumeJob"), every="PT25S", overlap="allow")
    _recurring(world, None, Change(at(400, 500), world.dice.choice(["cancelJob", "deleteJob"])), every="PT40S")
    for happened in (True, False):
        patch = {"every": "PT50S"}
        _recurring(
            world, None, Change(at(310, 450), "changeJob", patch, answered=False, happened=happened), every="PT45S"
        )
        _recurring(world, None, Change(at(310, 450), "pauseJob", answered=False, happened=happened), every="PT45S")
    _recurring(world, answered=False, every="PT30S")
    world.operation("createJob", TENANTS[0], BEGIN + 50, Outcome.UNKNOWN, body={"name": "never", "every": "PT9S"})


def _manners(world: World) -> None:
    """Jobs that say what becomes of their late instants, that have a place of their own, or only so many runs."""
    usual: dict[str, Any] = {"overlap": "allow", "endsAt": rfc3339(BEGIN + 540)}
    made_up_for = _job(world, every="PT13S", catchUp={"mode": "none", "window": "PT1H"}, **usual)
    backfill(world, made_up_for, 405, 200, 300)
    backfill(world, made_up_for, 450, 410, 440, "all")
    for mode, window in (
        ("all", "PT10M"),
        ("all", "PT45S"),
        ("latest", "PT5M"),
        ("latest", "PT10S"),
        ("none", "PT1H"),
    ):
        _recurring(world, every="PT9S", catchUp={"mode": mode, "window": window}, **usual)
    _recurring(world, every="PT20S", jitter="PT5S", **usual)
    _recurring(world, every="PT7S", jitter="PT12S", **usual)
    _recurring(world, cronExpression="0,10,25 * * * * *", jitter="PT2.5S", timezone="Asia/Kolkata", **usual)
    _recurring(world, every="PT30S", maxRuns=world.dice.randint(14, 16), **usual)
    more = Change(420, "changeJob", {"maxRuns": 3})
    _recurring(world, None, more, every="PT12S", maxRuns=2, **usual)
    for happened in (True, False):
        unsure = Change(430, "changeJob", {"maxRuns": 2}, answered=False, happened=happened)
        _recurring(world, None, unsure, every="PT15S", maxRuns=4, **usual)


def _one_time(world: World) -> None:
    for at, changes in (
        (world.between(20, 590), []),
        (-100.0, []),
        (460.0, [Change(440, "changeJob", {"scheduleAt": rfc3339(BEGIN + 520)})]),
        (world.between(480, 700), [Change(450, "cancelJob")]),
        (470.0, [Change(450, "pauseJob")]),
        (5000.0, []),
    ):
        job = _job(world, None, *changes, scheduleAt=rfc3339(BEGIN + at))
        due = BEGIN + (520.0 if changes and changes[0].kind == "changeJob" else at)
        run = new_run(world, job.tenant, job.id, due, job.body["payload"])
        made = job.created + 0.03
        if not changes or changes[0].kind == "changeJob":
            if due > BEGIN + LENGTH + 20:
                record(world, run, made, due, "pending", None, 0)
            else:
                carry_out(world, run, made, due, Plan())
        elif changes[0].kind == "cancelJob":
            record(world, run, made, due, "cancelled", BEGIN + 450.04, 0)
        else:
            record(world, run, made, due, "pending", None, 0)


def _policies(world: World) -> None:
    """Jobs that say how they are to be run, each in its own spelling; one of them says something else later."""
    waits: dict[str, Any] = {"backoff": {"initial": 2, "max": "PT1M30S"}, "retry": [{"on": ["timeout"], "never": True}]}
    _job(world, handler="http://target.test/do", priority=0, labels={"team": "blue"}, requires=["gpu"], **waits)
    less = Change(435, "changeJob", {"maxRetries": 1, "timeoutSeconds": 20})
    _job(world, None, less, maxRetries=5, delivery="atMostOnce", queue="reports", onDisconnect="stop")


def _by_hand(world: World) -> None:
    job = _job(world)
    for answered, happened in ((True, True), (False, True), (False, False)):
        at = world.between(400, 550)
        run_by_hand(world, job, at, answered=answered, happened=happened)


def _ad_hoc(world: World) -> None:
    dice, at = world.dice, world.between
    for _ in range(20):
        submit(world, at(6, 590), Plan(takes=at(0.01, 1), http=dice.random() < 0.3))
    for where, varies in ((at(10, 110), True), (at(400, 590), False)):  # one is a function, whatever the dice say
        submit(world, where, Plan(fails=1, http=dice.random() < 0.5 and varies))
        submit(world, where, Plan(fails=2, stalls=1))
        submit(world, where, Plan(fails=9, max_retries=dice.randrange(3)), callback={"events": ["failed"]})
        submit(world, where, Plan(), callback={"events": ["completed", "failed"]})
    submit(world, 420, Plan(), runAt=BEGIN + at(430, 500))
    submit_batch(world, at(6, 590), 5)
    for repeated in (True, False):
        for happened in (True, False):
            submit_unanswered(world, at(320, 550), happened=happened, repeated=repeated)


def _under_faults(world: World) -> None:
    for fault in world.faults:
        if not fault.target.startswith("worker"):
            continue
        slot, began = int(fault.target[-1]), fault.began - BEGIN
        for http in (True, False):
            submit(world, began - world.between(0.5, 1), Plan(takes=world.between(4, 8), slot=slot, http=http))
        submit(world, began - 0.35, Plan(takes=8, slot=slot, at_most_once=fault.kind == "kill"))
        submit(world, began - 0.24, Plan(takes=0.5, slot=slot))
        submit(world, began - 0.4, Plan(takes=20, slot=slot, isolated=True))


def _limits(world: World) -> None:
    stop = next(fault for fault in world.faults if fault.kind == "stop")
    submit_limited(world, stop.began - BEGIN - 1, 1, 3, Plan(takes=3, slot=1))
    submit_limited(world, world.between(400, 500), 1, 4, Plan(takes=1))
    submit_limited(world, world.between(400, 500), 1, 4, Plan(takes=1, http=True))
    submit_limited(world, world.between(400, 500), 2, 6, Plan(takes=world.between(0.8, 1.5)))
    submit_limited(world, world.between(400, 500), 1, 3, Plan(takes=0.5, fails=1))
    submit_crowd(world, world.between(410, 500), 7)
    window: dict[str, Any] = {"scheduleAt": rfc3339(BEGIN + 370), "endsAt": rfc3339(BEGIN + 560)}
    _job(world, Plan(takes=world.between(3, 6)), every="PT7S", overlap="queue", **window)
    _job(world, Plan(takes=world.between(7.2, 8), http=True), every="PT7S", overlap="queue", handler=TARGET, **window)
    _job(world, Plan(takes=20), every="PT9S", overlap="queueOne", **window)
    limited = Pretended(world, TENANTS[0], {"concurrency": {"limit": 2}}, Plan())
    run_in_turn(world, limited, 420, 2, 5)
    limited.change(Change(440, "changeJob", {"concurrency": {"limit": 3}}))
    run_in_turn(world, limited, 450, 3, 5)
    limited.finish()


def _plain(world: World) -> None:
    """Faults are planted into plain runs of quiet times: there is one, whatever the dice say."""
    submit(world, 470.0, Plan())


_PARTS: tuple[Callable[[World], None], ...] = (
    _schedules,
    _edits,
    _one_time,
    _by_hand,
    _ad_hoc,
    _under_faults,
    _limits,
    _manners,
    letters,
    cancels,
    commands,
    newest,
    graphs,
    snoozes,
    bookings,
    paused_queue,
    stopped_at_its_lease,
    inside,
    faces,
    _plain,
    poisoned,
    outsiders,
    _policies,
)
