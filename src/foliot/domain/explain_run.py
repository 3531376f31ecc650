"""Why a run does not start yet, or any more: every gate on its way, and the one that holds it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from foliot.domain.capacity import (
    LINES,
    line_gates,
    queue_gate,
    room_gates,
    start_from_queue,
    start_in_line,
    worker_gates,
)
from foliot.domain.endings import ended_gate
from foliot.domain.gates import (
    Basis,
    Code,
    Estimate,
    Explanation,
    Gate,
    Stand,
    arranged,
    clock_text,
    closed,
    count_text,
    later,
    passed,
    span_text,
    told,
)
from foliot.domain.ids import encode
from foliot.domain.job import Gate as JobGate
from foliot.domain.run_facts import RunFacts
from foliot.domain.states import FINISHED, State
from foliot.domain.suspicion import CRASHES_ALLOWED, Manner, deaths, manner

WAY: Final = (
    Code.FINISHED, Code.RETRIES, Code.QUARANTINE, Code.DELIVERY, Code.CANCEL, Code.OUTSIDE, Code.PAUSE, Code.WINDOW,
    Code.CALENDAR, Code.PARENTS, Code.DUE, Code.BACKOFF, Code.SCHEDULER, Code.OVERLAP, Code.CONCURRENCY, Code.TENANT,
    Code.QUEUE, Code.QUEUE_WORKERS, Code.HANDLER_WORKERS, Code.PLACES, Code.TURN,
)  # fmt: skip
"""The gates of a run, in the order in which it passes them."""
_OPENED_BY_TIME: Final = frozenset({Code.DUE, Code.BACKOFF, *LINES.values(), Code.PLACES, Code.TURN})
"""Gates that open by themselves. Others wait for somebody, and nobody can tell how long."""
_NAMED: Final = 3


def explain_run(facts: RunFacts) -> Explanation:
    """Every gate exactly once; one blocks, or the run is in a worker's hands, or there is an estimate."""
    if facts.state in FINISHED:
        gates = arranged(_ended(facts))
        return Explanation(gates, told(gates[0]))
    is_running = facts.state is State.RUNNING
    gates = arranged(_running(facts) if is_running else _waiting(facts))
    if gates[0].stand is Stand.BLOCKING:
        return Explanation(gates, told(gates[0]), _estimate(facts, gates), is_running)
    if is_running:
        return Explanation(gates, _in_hand(facts), None, is_running=True)
    return Explanation(gates, "Nothing holds it: it starts now.", Estimate(facts.now, Basis.NOW))


def _ended(facts: RunFacts) -> Iterator[Gate]:
    end = ended_gate(
        facts.state, error=facts.error, error_class=facts.error_class, at=facts.finished_at or facts.now,
        attempts=facts.attempt, now=facts.now,
    )  # fmt: skip
    yield end
    for code in WAY:
        if code is not end.code:
            yield passed(code, "Passed.") if facts.attempt else later(code, "It ended before it came to this.")


def _running(facts: RunFacts) -> Iterator[Gate]:
    yield passed(Code.FINISHED, "It has not ended.")
    yield from _record(facts)
    yield _cancel(facts)
    if facts.outside_until is not None:
        until = clock_text(facts.outside_until, facts.now)
        yield closed(
            Code.OUTSIDE,
            f"Its handler went on outside and has until {until} to say how it ended.",
            "It says so with the token of its call; after that the attempt counts as timed out.",
            since=facts.started_at,
            until=facts.outside_until,
        )
    else:
        yield passed(Code.OUTSIDE, "Its handler does not go on outside.")
    for code in WAY[WAY.index(Code.PAUSE) :]:
        yield passed(code, "Passed.")


def _in_hand(facts: RunFacts) -> str:
    who = "A worker" if facts.worker is None else f"Worker {encode('wrk', facts.worker)}"
    number = facts.attempt + 1
    if facts.started_at is not None:
        return f"{who} has run it since {clock_text(facts.started_at, facts.now)}, attempt {number}."
    since = "" if facts.held_since is None else f" since {clock_text(facts.held_since, facts.now)}"
    return f"{who} has had it in hand{since}, attempt {number}."


def _waiting(facts: RunFacts) -> Iterator[Gate]:
    yield passed(Code.FINISHED, "It has not ended.")
    yield from _record(facts)
    yield _cancel(facts)
    yield passed(Code.OUTSIDE, "Its handler does not go on outside.")
    yield _pause(facts)
    at = clock_text(facts.scheduled_at, facts.now)
    yield passed(Code.WINDOW, f"{at} lies within what its job allows." if facts.job else "It has no job that ends.")
    yield passed(Code.CALENDAR, f"No calendar takes {at} away.")
    yield _parents(facts)
    yield from _time(facts)
    if facts.state is State.READY:
        for code in LINES.values():
            yield passed(code, "It holds all the seats that it needs.")
    else:
        yield from line_gates(facts.lines, facts.whose, facts.path, facts.now)
    if facts.fleet is None:
        for code in WAY[WAY.index(Code.QUEUE) :]:
            yield later(code, "Its queue is looked at when a scheduler has taken it in.")
        return
    yield queue_gate(facts.fleet, facts.now)
    yield from worker_gates(facts.fleet, facts.now)
    yield from room_gates(facts.fleet, facts.ahead, facts.rank)


def _record(facts: RunFacts) -> Iterator[Gate]:
    """What its attempts so far leave it."""
    used = {"attempts": facts.attempt, "maxRetries": facts.max_retries}
    yield passed(Code.RETRIES, f"{count_text(facts.attempt, 'attempt')} so far.", numbers=used)
    killed = {"deaths": deaths(facts.mark), "crashes": facts.crashes, "crashesAllowed": CRASHES_ALLOWED}
    if manner(facts.mark) is Manner.ALONE:
        says = f"{count_text(deaths(facts.mark), 'worker')} died while it ran, so it runs alone in its own process; "
        says += f"after {CRASHES_ALLOWED} crashes there ({facts.crashes} so far) it is a dead letter."
    else:
        says = "It is no suspect."
    yield passed(Code.QUARANTINE, says, numbers=killed)
    once = (
        "At most once, and it has not been lost."
        if facts.at_most_once
        else "At least once: lost attempts are repeated."
    )
    yield passed(Code.DELIVERY, once)


def _cancel(facts: RunFacts) -> Gate:
    if facts.cancel_asked is not None:
        by = "" if facts.stops_by is None else f"; it is over by {clock_text(facts.stops_by, facts.now)}"
        says = f"Its end was asked for at {clock_text(facts.cancel_asked, facts.now)}{by}."
        hint = "Its worker stops it, and it is not tried again."
        return closed(Code.CANCEL, says, hint, since=facts.cancel_asked, until=facts.stops_by)
    if facts.job is not None and facts.job.gate is JobGate.CANCELLED and facts.state is not State.RUNNING:
        return closed(Code.CANCEL, f"Its job {facts.job.name!r} was cancelled.", "Create the job anew to run it again.")
    return passed(Code.CANCEL, "Nobody asked for its end.")


def _pause(facts: RunFacts) -> Gate:
    if facts.job is None:
        return passed(Code.PAUSE, "It has no job that could be paused.")
    if facts.job.gate is not JobGate.PAUSED:
        return passed(Code.PAUSE, f"Job {facts.job.name!r} is not paused.")
    job = encode("job", facts.job.id)
    since = "" if facts.job.paused_at is None else f" since {clock_text(facts.job.paused_at, facts.now)}"
    says = f"Its job {facts.job.name!r} has been paused{since}."
    return closed(
        Code.PAUSE, says, f"`foliot job resume {job}` lets it go on.", since=facts.job.paused_at, names=(job,)
    )


def _parents(facts: RunFacts) -> Gate:
    if not facts.waits_for_parents:
        return passed(Code.PARENTS, "It waits for no parent.")
    dead = [parent for parent in facts.parents if parent.dead]
    of = dead or facts.parents
    named = [f"{encode('run', each.run)}" + (f" ({each.name})" if each.name else "") for each in of]
    names = tuple(encode("run", each.run) for each in of)
    listed = ", ".join(named[:_NAMED]) + (f" and {len(named) - _NAMED} more" if len(named) > _NAMED else "")
    numbers = {"parents": len(facts.parents), "dead": len(dead)}
    if dead:
        first = names[0]
        hint = f"`foliot run retry {first}` lets it go on; discard it to give this run up."
        return closed(Code.PARENTS, f"Waits for what failed for good: {listed}.", hint, numbers=numbers, names=names)
    hint = f"It goes when they have ended; `foliot run graph {encode('run', facts.run)}` shows them all."
    return closed(Code.PARENTS, f"Waits for its parents: {listed}.", hint, numbers=numbers, names=names)


def _time(facts: RunFacts) -> Iterator[Gate]:
    at, wait = clock_text(facts.due_at, facts.now), facts.due_at - facts.now
    left = {"seconds": round(max(wait, timedelta()).total_seconds(), 3)}
    again = facts.is_early and facts.attempt > 0
    if facts.is_early and not again:
        yield closed(
            Code.DUE, f"Waits for its time: due at {at}, in {span_text(wait)}.", numbers=left, until=facts.due_at
        )
    else:
        yield passed(Code.DUE, "Its time has come." if facts.is_early else f"It has been due since {at}.")
    if again:
        why = f" ({facts.error.strip().splitlines()[-1][:200]})" if facts.error and facts.error.strip() else ""
        says = f"Waits to be tried again: attempt {facts.attempt} failed{why}; the next is due at {at}, in "
        says += f"{span_text(wait)}."
        numbers = {**left, "attempts": facts.attempt, "maxRetries": facts.max_retries}
        yield closed(Code.BACKOFF, says, "`backoff` of the job says how long.", numbers=numbers, until=facts.due_at)
    else:
        yield passed(Code.BACKOFF, "It does not wait to be tried again.")
    yield _scheduler(facts)


def _scheduler(facts: RunFacts) -> Gate:
    numbers = {"schedulers": facts.schedulers}
    if facts.state is not State.SCHEDULED or facts.schedulers:
        return passed(Code.SCHEDULER, "Schedulers have done their part, or live to do it.", numbers=numbers)
    seen = (
        ""
        if facts.scheduler_seen is None
        else f"; the last was heard of at {clock_text(facts.scheduler_seen, facts.now)}"
    )
    when = "it falls due" if facts.is_early else "it fell due"
    says = f"No scheduler lives to hand it out when {when}{seen}."
    return closed(Code.SCHEDULER, says, "Start one: `foliot scheduler`.", numbers=numbers, since=facts.scheduler_seen)


def _estimate(facts: RunFacts, gates: tuple[Gate, ...]) -> Estimate | None:
    shut = {gate.code for gate in gates if gate.stand in {Stand.BLOCKING, Stand.CLOSED}}
    if not shut <= _OPENED_BY_TIME:
        return None
    code = gates[0].code
    if code in {Code.DUE, Code.BACKOFF}:
        return Estimate(facts.due_at, Basis.DUE)
    if facts.line is not None and code in LINES.values():
        return start_in_line(facts.line, facts.takes, facts.now)
    if facts.fleet is None or facts.ahead is None:
        return None
    return start_from_queue(facts.fleet, facts.ahead, facts.takes, facts.now)
