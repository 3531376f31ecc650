"""Explanations on the wire: every gate of a run or of a job, the one that blocks first."""

from typing import Annotated

import msgspec
from msgspec import Meta

from foliot.domain.explain_job import WAY as JOB_WAY
from foliot.domain.explain_run import WAY as RUN_WAY
from foliot.domain.gates import Basis, Code, Explanation, Gate, Stand
from foliot.domain.ids import encode
from foliot.wire.timing import Instant

GateWord = Annotated[str, Meta(extra_json_schema={"enum": sorted({*RUN_WAY, *JOB_WAY})})]
StandWord = Annotated[str, Meta(extra_json_schema={"enum": [each.value for each in Stand]})]
BasisWord = Annotated[str, Meta(extra_json_schema={"enum": [each.value for each in Basis]})]


class GateView(msgspec.Struct, kw_only=True, rename="camel"):
    """One gate: `passed`, `blocking`, `closed` (it would block next), or decided `later`."""

    gate: GateWord
    state: StandWord
    sentence: str
    hint: str
    """What to do about it."""
    numbers: dict[str, float]
    """Counts beyond 10,000 are told as 10,001."""
    since: Instant | None
    until: Instant | None
    ids: list[str]
    """The runs, jobs and workers that it speaks of."""


class RunExplanation(msgspec.Struct, kw_only=True, rename="camel"):
    """Why a run does not start: all its gates, the blocking one first."""

    run_id: str
    job_id: str | None
    state: str
    sentence: str
    """The whole answer, for people."""
    blocking: GateWord | None
    """Null if nothing holds it, or a worker has it."""
    ahead: int | None
    """Of a run that waits for a worker or for a seat: how many are before it; 10,001 for more than 10,000."""
    estimated_start: Instant | None
    """Null if it waits for somebody, and nobody can tell; or if it has started."""
    estimate_from: BasisWord | None
    gates: list[GateView]
    at: Instant
    """When all this was so."""


class HeldView(msgspec.Struct, kw_only=True, rename="camel"):
    """Runs of a job that the same gate holds up; `gate` is null for those that run."""

    gate: GateWord | None
    runs: int
    oldest_run_id: str


class JobExplanation(msgspec.Struct, kw_only=True, rename="camel"):
    """Why a job fires next, or does not; a one-time job is explained by its run."""

    job_id: str
    status: str
    sentence: str
    blocking: GateWord | None
    next_fire_at: Instant | None
    estimated_start: Instant | None
    estimate_from: BasisWord | None
    gates: list[GateView]
    runs: list[HeldView]
    """What its runs wait for that have not ended; the first thousand of them."""
    at: Instant


def gate_view(gate: Gate) -> GateView:
    return GateView(
        gate=gate.code,
        state=gate.stand,
        sentence=gate.says,
        hint=gate.hint,
        numbers=dict(gate.numbers),
        since=gate.since,
        until=gate.until,
        ids=list(gate.names),
    )


def blocking_word(explanation: Explanation) -> Code | None:
    return None if explanation.blocking is None else explanation.blocking.code


def held_view(code: Code | None, runs: int, oldest: int) -> HeldView:
    return HeldView(gate=code, runs=runs, oldest_run_id=encode("run", oldest))
