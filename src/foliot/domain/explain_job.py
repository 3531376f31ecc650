"""Why a job fires next, or does not: every gate between it and its next run."""

from collections.abc import Iterator
from typing import Final

from foliot.domain.capacity import LINES, line_gates, queue_gate, worker_gates
from foliot.domain.fire_gates import (
    calendar_gate,
    daylight_gate,
    firing_gates,
    jitter_gate,
    local_text,
    schedule_gate,
    window_gate,
)
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
    passed,
    span_text,
    told,
)
from foliot.domain.ids import encode
from foliot.domain.job import Gate as JobGate
from foliot.domain.job import Overlap
from foliot.domain.job_facts import JobFacts

WAY: Final = (
    Code.CANCEL, Code.PAUSE, Code.PARENTS, Code.SCHEDULE, Code.WINDOW, Code.CALENDAR, Code.DAYLIGHT, Code.JITTER,
    Code.CLOCK, Code.CATCH_UP, Code.SCHEDULER, Code.OVERLAP, Code.CONCURRENCY, Code.TENANT, Code.QUEUE,
    Code.QUEUE_WORKERS, Code.HANDLER_WORKERS,
)  # fmt: skip
"""The gates of a job, in the order in which its next fire time passes them."""
_FIRES_ANYWAY: Final = frozenset(
    {Code.WINDOW, Code.CALENDAR, Code.DAYLIGHT, Code.OVERLAP, Code.QUEUE, Code.QUEUE_WORKERS, Code.HANDLER_WORKERS}
)
"""Closed gates that leave a later fire time, or hold up the run and not the fire time."""


def explain_job(facts: JobFacts) -> Explanation:
    """Every gate exactly once; one blocks, or there is an estimate."""
    gates = arranged(_gates(facts))
    fire = facts.following
    shut = {gate.code for gate in gates if gate.stand in {Stand.BLOCKING, Stand.CLOSED}}
    estimate = None
    if fire is not None and shut <= _FIRES_ANYWAY:
        estimate = Estimate(max(fire + facts.wait, facts.now), Basis.SCHEDULE)
    if fire is None or gates[0].stand is Stand.BLOCKING:
        then = "" if estimate is None or fire is None else f" The next fire time is {local_text(facts, fire)}."
        return Explanation(gates, told(gates[0]) + then, estimate)
    return Explanation(gates, f"Fires next at {local_text(facts, fire)}, in {span_text(fire - facts.now)}.", estimate)


def _gates(facts: JobFacts) -> Iterator[Gate]:
    yield _cancel(facts)
    yield _pause(facts)
    yield _parents(facts)
    bounds = (window_gate(facts), calendar_gate(facts))
    yield schedule_gate(facts, is_told=any(gate.stand is Stand.CLOSED for gate in bounds))
    yield from bounds
    yield daylight_gate(facts)
    yield jitter_gate(facts)
    yield from firing_gates(facts)
    yield _overlap(facts)
    whose = f"job {facts.name!r}"
    yield from (gate for gate in line_gates(facts.lines, whose, facts.path, facts.now) if gate.code is not LINES[1])
    yield queue_gate(facts.fleet, facts.now)
    yield from worker_gates(facts.fleet, facts.now)


def _cancel(facts: JobFacts) -> Gate:
    if facts.gate is JobGate.CANCELLED:
        return closed(Code.CANCEL, "The job was cancelled.", "Create it anew to run it again.")
    return passed(Code.CANCEL, "The job is not cancelled.")


def _pause(facts: JobFacts) -> Gate:
    if facts.gate is not JobGate.PAUSED:
        return passed(Code.PAUSE, "The job is not paused.")
    since = "" if facts.paused_at is None else f" since {clock_text(facts.paused_at, facts.now)}"
    hint = f"`foliot job resume {encode('job', facts.job)}` lets it go on."
    return closed(Code.PAUSE, f"The job has been paused{since}.", hint, since=facts.paused_at)


def _parents(facts: JobFacts) -> Gate:
    if facts.held_roots and facts.gate is JobGate.OPEN:
        first = facts.held_roots[0]
        names = tuple(encode("job", each.id) for each in facts.held_roots)
        says = f"Its graph does not fire while its root {first.name!r} is paused or cancelled."
        return closed(Code.PARENTS, says, f"`foliot job resume {names[0]}` lets a paused one go on.", names=names)
    if not facts.parents:
        return passed(Code.PARENTS, "It depends on no other job.")
    listed = ", ".join(each.name for each in facts.parents)
    says = f"It fires with its graph, and each run waits for those of {listed}."
    return passed(Code.PARENTS, says, names=tuple(encode("job", each.id) for each in facts.parents))


def _overlap(facts: JobFacts) -> Gate:
    before = facts.previous
    if before is None:
        return passed(Code.OVERLAP, "No scheduled run from before is still there.")
    run = encode("run", before.run)
    says = f"Its run of {clock_text(before.scheduled_at, facts.now)} ({run}) is still there"
    match facts.overlap:
        case Overlap.ALLOW:
            return passed(Code.OVERLAP, f"{says}, which is allowed.", names=(run,))
        case Overlap.CANCEL_PREVIOUS:
            return passed(Code.OVERLAP, f"{says}, and is cancelled when the next one comes.", names=(run,))
        case Overlap.SKIP:
            says += ": unless it ends before, the next fire time is skipped."
        case _:
            says += ": the next one waits for its end."
    hint = f"`foliot run explain {run}` says what it does."
    return closed(Code.OVERLAP, says, hint, since=before.started_at, names=(run,))
