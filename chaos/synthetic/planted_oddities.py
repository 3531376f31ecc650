"""Planted faults of S18 to S20, and what dead letters, snoozes and leases add to the others."""

import copy

from chaos.oracle import seconds
from chaos.records import SIDE, Outcome, Phase
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import BOUNDS, rfc3339


def _decided(it: Surgery, *deeds: str, by: str | None = None) -> Row:
    """A run with these decisions on record; `by`: how its first one came about."""
    for name, rows in it.dump.decided.items():
        if [row["deed"] for row in rows] == list(deeds) and (by is None or rows[0]["by"].startswith(by)):
            return next(row for row in it.runs() if row["runId"] == name)
    raise LookupError(f"nothing was {deeds}")


def _again(it: Surgery, run: Row, at: float, *, failed: bool = True) -> None:
    """One more attempt on record and in the ledger, with a higher fence."""
    last = it.attempts(run)[-1]
    shift, fence = at - seconds(last["startedAt"]), last["fence"] + 100_000
    for effect in it.effects(run, Phase.START, Phase.END)[-2:]:
        twin = copy.copy(effect)
        twin.at, twin.fence, twin.nonce, twin.attempt = effect.at + shift, fence, "again", effect.attempt + 1
        it.add(twin)
    times = {name: rfc3339(seconds(last[name]) + shift) for name in ("startedAt", "finishedAt")}
    status = "failed" if failed else last["status"]
    new = {**last, **times, "fence": fence, "attempt": last["attempt"] + 1, "status": status}
    it.dump.attempts[it.tenant_of(run)].append(new)
    run |= {"attempts": run["attempts"] + 1, "finishedAt": times["finishedAt"]}


@plant("S18 replayed by nobody")
def _(it: Surgery) -> None:
    run = _decided(it, "replayed")
    it.evidence.operations[:] = [each for each in it.evidence.operations if run["runId"] not in _named(each)]


@plant("S18 discarded by an operation of nobody")
def _(it: Surgery) -> None:
    run = _decided(it, "replayed", "discarded")
    it.dump.decided[run["runId"]][1]["by"] = "op_of_nobody"


@plant("S18 overlooked by a filter")
def _(it: Surgery) -> None:
    """It is dead, like the one that was discarded by a filter, and older."""
    run = _decided(it, "replayed", "discarded")
    del it.dump.decided[run["runId"]][1]
    run["state"] = "dead"


@plant("S18 one call, two replays")
def _(it: Surgery) -> None:
    run = _decided(it, "replayed")
    rows = it.dump.decided[run["runId"]]
    rows.append({**rows[0], "at": rows[0]["at"] + 0.05})


@plant("S18 acknowledged, and not on record")
def _(it: Surgery) -> None:
    run = _decided(it, "discarded", by="hand")
    del it.dump.decided[run["runId"]]


@plant("S18 let go on, and never began")
def _(it: Surgery) -> None:
    run = _decided(it, "discarded", by="hand")
    (told,) = it.dump.decided[run["runId"]]
    for each in it.evidence.operations:
        if run["runId"] in _named(each):
            each.kind = "replayLetters"
    it.dump.decided[run["runId"]] = [{**told, "deed": "replayed"}]
    run["state"] = "dead"


@plant("S18 began after it had been discarded")
def _(it: Surgery) -> None:
    run = _decided(it, "discarded")
    # As if it had failed once more by the same allowance, so that only its time is wrong.
    _another_try(it, run)
    _again(it, run, it.dump.decided[run["runId"]][0]["at"] + 2.0)


@plant("S18 came back after it had been discarded")
def _(it: Surgery) -> None:
    it_is = _decided(it, "replayed", "discarded")
    rows = it.dump.decided[it_is["runId"]]
    rows[0]["deed"], rows[1]["deed"], rows[1]["by"] = "discarded", "replayed", rows[0]["by"]
    for each in it.evidence.operations:
        if it_is["runId"] in _named(each):
            each.kind = "discardLetters"
            again = copy.copy(each)
            again.kind, again.key, again.number = "replayLetters", f"{each.key} again", each.number + 100_000
            again.body = again.answer = {"runIds": [it_is["runId"]]}
            again.invoked, again.completed = rows[1]["at"] - 0.03, rows[1]["at"] + 0.03
            each.body = each.answer = {"runIds": [it_is["runId"]]}
            break
    it.evidence.operations.append(again)
    it.dump.decided[it_is["runId"]] = [rows[0], rows[1]]
    begun = it.attempts(it_is)[-1]
    shift = rows[1]["at"] + 0.2 - seconds(begun["startedAt"])
    for effect in it.effects(it_is)[-2:]:
        effect.at += shift
    begun |= {name: rfc3339(seconds(begun[name]) + shift) for name in ("startedAt", "finishedAt")}
    it_is |= {"state": "dead", "finishedAt": begun["finishedAt"]}
    it.sort()


@plant("S7 more retries than a replay allows")
def _(it: Surgery) -> None:
    run = _decided(it, "replayed", "replayed")
    for number in range(1, 6):
        _again(it, run, seconds(it.attempts(run)[-1]["finishedAt"]) + 0.3 * number)


@plant("S7 two at once after a replay")
def _(it: Surgery) -> None:
    """The claim of before the replay was believed to cover the run still, and it was given out once more."""
    run = _decided(it, "replayed")
    _again(it, run, it.effects(run, Phase.START)[-1].at + 0.01, failed=False)
    it.attempts(run)[-2]["status"] = "lost"


@plant("S8 twice after one replay")
def _(it: Surgery) -> None:
    once = {name for name, each in it.submissions().items() if _once(each)}
    name = next(name for name in it.dump.decided if name in once)
    run = next(row for row in it.runs() if row["runId"] == name)
    _again(it, run, seconds(it.attempts(run)[-1]["finishedAt"]) + 1.0, failed=False)
    failed = it.attempts(run)[-2]
    failed["status"] = "failed"
    for end in it.effects(run, Phase.END):
        end.failed |= end.fence == failed["fence"]


@plant("S12 a snooze spends an attempt")
def _(it: Surgery) -> None:
    run = next(row for row in it.runs() if "snoozed" in it.tries(row))
    run["attempts"] += 1


@plant("S10 woken early")
def _(it: Surgery) -> None:
    run = next(row for row in it.runs() if it.tries(row)[:1] == ["snoozed"])
    first = it.attempts(run)[0]
    following = it.effects(run, Phase.START)[1]
    first["finishedAt"] = rfc3339(following.at - 0.4)


@plant("S19 effect twice")
def _(it: Surgery) -> None:
    fences = next(iter(it.dump.booked.values()))
    fences.append(fences[0] + 100_000)


@plant("S19 effect of a run that failed")
def _(it: Surgery) -> None:
    bodies = {name: each.body or {} for name, each in it.submissions().items()}
    failed = (row for row in it.runs() if row["status"] == "failed")
    run = next(row for row in failed if bodies.get(row["runId"], {}).get("handler") == "booked")
    it.dump.booked[run["runId"]] = [it.attempts(run)[-1]["fence"]]


@plant("S19 success without its effect")
def _(it: Surgery) -> None:
    del it.dump.booked[next(iter(it.dump.booked))]


@plant("S19 effect of another fence")
def _(it: Surgery) -> None:
    next(iter(it.dump.booked.values()))[0] -= 1


@plant("S20 begun in a paused queue")
def _(it: Surgery) -> None:
    pause = it.answered("pauseQueue")[0]
    holds = seconds((pause.answer or {})["holdsBy"])
    bodies = {name: each.body or {} for name, each in it.submissions().items()}
    waiting = (row for row in it.runs() if bodies.get(row["runId"], {}).get("queue") == SIDE)
    run = next(row for row in waiting if pause.completed < seconds(row["createdAt"]) < holds)
    it.move(run, holds + 1.0 - it.effects(run, Phase.START)[0].at)


@plant("S9 alive when its worker's lease had ended")
def _(it: Surgery) -> None:
    cut = next(fault for fault in it.evidence.faults if fault.kind == "partition")
    patient = {name for name, each in it.submissions().items() if (each.body or {}).get("onDisconnect")}
    beat = next(each for each in it.evidence.effects if each.run in patient and each.phase is Phase.BEAT)
    later = copy.copy(beat)
    later.at = cut.began + BOUNDS.lease + BOUNDS.guardian + 1.5
    it.add(later)


@plant("S5 rolled back, and ran")
def _(it: Surgery) -> None:
    run = it.plain_run()
    done = it.submissions()[run["runId"]]
    done.kind, done.outcome = "submitInside", Outcome.FAIL


def _named(operation: object) -> set[str]:
    body, run = getattr(operation, "body", None) or {}, getattr(operation, "run", None)
    return {*body.get("runIds", ()), *([run] if run else ())}


def _once(operation: object) -> bool:
    return (getattr(operation, "body", None) or {}).get("delivery") == "atMostOnce"


def _another_try(it: Surgery, run: Row) -> None:
    body = it.submissions()[run["runId"]].body
    if body is not None:
        body["maxRetries"] = 1
