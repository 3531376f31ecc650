"""Pretended keys that come and go, rivals for one version of a job, jobs over a quota, a slow key, new data keys."""

from typing import Any

from chaos.records import MOST_JOBS, PACE, RATIONED, WHISPER, Operation, Outcome
from chaos.synthetic.execution import Plan, carry_out, new_run
from chaos.synthetic.jobs import Change, Pretended
from chaos.synthetic.world import BEGIN, BOUNDS, TENANTS, World, rfc3339

RIVALRIES = 2
"""Jobs that are fought over; they are there all the time."""


def faces(world: World) -> None:
    for part in (_keys, _rivals, _applicants, _haste, _rotations):
        part(world)


def _create(world: World, at: float, **more: Any) -> str:
    name = world.number("key")
    world.operation("createKey", RATIONED, at, Outcome.OK, body={"name": name, **more}, answer={"keyId": name})
    return name


def use(world: World, key: str, at: float, status: int = 201) -> Operation:
    """A run handed in with this key, or refused."""
    body = {"handler": "quick", "payload": {"tenant": RATIONED, "serial": f"{WHISPER}{world.number('act')}"}}
    if status != 201:
        return world.operation("createRun", RATIONED, at, Outcome.FAIL, body=body, by=key, status=status)
    run = new_run(world, RATIONED, None, at + 0.03, body["payload"])
    answer = {"runId": run["id"]}
    done = world.operation("createRun", RATIONED, at, Outcome.OK, body=body, by=key, answer=answer, status=201)
    carry_out(world, run, at + 0.03, at + 0.03, Plan())
    return done


def _keys(world: World) -> None:
    """One is replaced and ends by itself, its successor is revoked; a call without an answer may have revoked one."""
    at = BEGIN + 410 + world.between(0, 3)
    former = _create(world, at)
    use(world, former, at + 0.2)
    world.operation("createKey", RATIONED, at + 0.4, Outcome.FAIL, body={"name": "more"}, by=former, status=403)
    admin, risen = _create(world, at + 0.1, role="admin"), {"name": "risen", "role": "operator"}
    world.operation("createKey", RATIONED, at + 0.45, Outcome.FAIL, body=risen, by=admin, status=403)
    key, expires = world.number("key"), rfc3339(at + 3.5)
    answer = {"key": {"keyId": key}, "former": {"keyId": former, "expiresAt": expires}}
    world.operation("rotateKey", RATIONED, at + 0.5, Outcome.OK, thing=former, body={}, answer=answer)
    for shown in (former, key):
        use(world, shown, at + 1)
    world.operation("revokeKey", RATIONED, at + 2, Outcome.OK, thing=key, answer={"keyId": key, "status": "revoked"})
    use(world, key, at + 2.5)
    for shown in (former, key):
        use(world, shown, at + 2.1 + BOUNDS.revoked + world.between(0, 1), 401)
    doubtful = _create(world, at + 20)
    world.operation("revokeKey", RATIONED, at + 21, Outcome.UNKNOWN, thing=doubtful)
    use(world, doubtful, at + 40, world.dice.choice((201, 401)))


def _rivals(world: World) -> None:
    """Of two who change the same version one is late, or neither knows; a stranger finds nothing to change."""
    for answered in (True, False)[:RIVALRIES]:
        job = Pretended(world, RATIONED, {}, Plan())
        at = 420 + world.between(0, 5)
        one = job.change(Change(at, "changeJob", {"payload": {"serial": world.number("act")}}, answered=answered))
        one.match = 1
        late: dict[str, Any] = {"job": job.id, "body": {"payload": {"serial": world.number("act")}}}
        world.operation("changeJob", RATIONED, BEGIN + at + 0.01, Outcome.FAIL, match=1, status=412, **late)
        late["body"] = {"maxRetries": 3}  # nothing would change: that it is let in at all is what may be planted
        world.operation("changeJob", RATIONED, BEGIN + at + 9, Outcome.FAIL, by=TENANTS[0], status=404, **late)
        job.change(Change(at + 12, "cancelJob"))
        job.finish()


def _applicants(world: World) -> None:
    """As many as there may be, besides those of the rivals; and one too many."""
    for turn in range(MOST_JOBS - RIVALRIES):
        job = Pretended(world, RATIONED, {}, Plan())
        job.change(Change(6.0 + turn, "cancelJob"))
        job.finish()
    world.operation("createJob", RATIONED, BEGIN + 6, Outcome.FAIL, body={"name": "one too many"}, status=429)


def _haste(world: World) -> None:
    key = _create(world, BEGIN + 430, rateLimit=PACE)
    for turn in range(10):
        use(world, key, BEGIN + 431 + turn)
        use(world, key, BEGIN + 431.1 + turn, 429)


def _rotations(world: World) -> None:
    for outcome in (Outcome.OK, Outcome.UNKNOWN):
        world.operation("rotateEncryption", RATIONED, BEGIN + world.between(410, 500), outcome)
