"""What happened to a run, step by step, as its history tells it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from foliot.domain.outcome import Ending
from foliot.domain.states import State


class Passage(NamedTuple):
    """One row of a run's history: an attempt, or something that happened without one."""

    attempt: int
    ending: int
    state: int
    started_at: datetime | None
    finished_at: datetime
    worker: int | None
    error: str | None


class Step(NamedTuple):
    """Something that happened, and where the run stood afterwards."""

    at: datetime
    event: str
    state: State
    attempt: int | None = None
    worker: int | None = None
    error: str | None = None


def steps(created: Step, passages: Sequence[Passage], going: Step | None) -> list[Step]:
    """From how it came to be, over all that is on record, to the attempt that is `going` on."""
    found = [created]
    for passage, following in pairwise([*passages, None]):
        assert passage is not None  # noqa: S101 - only the last one is followed by nothing
        found.extend(_steps(passage, following))
    return found if going is None else [*found, going]


def _steps(passage: Passage, following: Passage | None) -> Iterator[Step]:
    ending = Ending(passage.ending)
    state = State(passage.state)
    if ending is Ending.NONE:
        event = "replayed" if state is State.READY else state.word
        yield Step(passage.finished_at, event, state, error=passage.error)
        return
    who = (passage.attempt, passage.worker)
    if passage.started_at is not None:
        yield Step(passage.started_at, "started", State.RUNNING, *who)
    # The row in which a run died says so no longer once it was replayed or discarded: the next row does.
    brought_back = following is not None and following.ending == Ending.NONE and state is State.READY
    is_dead = brought_back and ending is not Ending.RELEASED
    yield Step(passage.finished_at, ending.word, State.DEAD if is_dead else state, *who, passage.error)
