"""Which states a run passes through and what may follow what: the one table everything else derives from."""

from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final


class State(IntEnum):
    """Where a run stands. The numbers are stored, so they never change meaning."""

    SCHEDULED = 0  # waits for its time
    READY = 1  # may run now
    BLOCKED = 2  # waits for something other than time
    RUNNING = 3  # a claim covers it, or its handler goes on outside
    SUCCEEDED = 4
    DEAD = 5  # has used its attempts
    CANCELLED = 6
    UNKNOWN = 7  # at-most-once, and its worker was lost
    SKIPPED = 8  # an occurrence that was not to run
    MISSED = 9  # an occurrence whose time passed while nobody could run it
    DISCARDED = 10  # a dead run that somebody gave up

    @property
    def word(self) -> str:
        return self.name.lower()


class Event(StrEnum):
    """What can happen to a run."""

    FELL_DUE = "fell due"
    ADMITTED = "admitted"
    HELD = "held"
    RESUMED = "resumed"
    CLAIMED = "claimed"
    ENTRUSTED = "entrusted"
    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    SNOOZED = "snoozed"
    RELEASED = "released"
    LAPSED = "lapsed"
    DIED = "died"
    VANISHED = "vanished"
    CANCELLED = "cancelled"
    GIVEN_UP = "given up"  # what it waits for cannot come any more
    REPLAYED = "replayed"
    DISCARDED = "discarded"


TRANSITIONS: Final = MappingProxyType(
    {
        (State.SCHEDULED, Event.FELL_DUE): State.READY,
        (State.SCHEDULED, Event.HELD): State.BLOCKED,
        (State.SCHEDULED, Event.CANCELLED): State.CANCELLED,
        (State.BLOCKED, Event.ADMITTED): State.READY,
        (State.BLOCKED, Event.RESUMED): State.SCHEDULED,
        (State.BLOCKED, Event.CANCELLED): State.CANCELLED,
        (State.BLOCKED, Event.GIVEN_UP): State.SKIPPED,
        (State.READY, Event.CLAIMED): State.RUNNING,
        (State.READY, Event.HELD): State.BLOCKED,
        (State.READY, Event.CANCELLED): State.CANCELLED,
        (State.RUNNING, Event.ENTRUSTED): State.RUNNING,
        (State.RUNNING, Event.SUCCEEDED): State.SUCCEEDED,
        (State.RUNNING, Event.RETRIED): State.SCHEDULED,
        (State.RUNNING, Event.SNOOZED): State.SCHEDULED,
        (State.RUNNING, Event.RELEASED): State.READY,
        (State.RUNNING, Event.LAPSED): State.READY,
        (State.RUNNING, Event.DIED): State.DEAD,
        (State.RUNNING, Event.VANISHED): State.UNKNOWN,
        (State.RUNNING, Event.HELD): State.BLOCKED,
        (State.RUNNING, Event.CANCELLED): State.CANCELLED,
        (State.DEAD, Event.REPLAYED): State.READY,
        (State.DEAD, Event.DISCARDED): State.DISCARDED,
    }
)


def sources(event: Event) -> frozenset[State]:
    """States in which `event` is legal."""
    return frozenset(state for state, possible in TRANSITIONS if possible is event)


FINISHED: Final = frozenset(State) - {state for state, _ in TRANSITIONS} | {State.DEAD}
"""States in which nothing more happens to a run by itself."""


class Status(StrEnum):
    """What people ask for: the coarse answer beside the state."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    MISSED = "missed"
    PAUSED = "paused"  # jobs only
    BLOCKED = "blocked"  # jobs only


STATUS_OF: Final = MappingProxyType(
    {
        State.SCHEDULED: Status.PENDING,
        State.READY: Status.PENDING,
        State.BLOCKED: Status.PENDING,
        State.RUNNING: Status.RUNNING,
        State.SUCCEEDED: Status.COMPLETED,
        State.DEAD: Status.FAILED,
        State.DISCARDED: Status.FAILED,
        State.UNKNOWN: Status.FAILED,
        State.CANCELLED: Status.CANCELLED,
        State.SKIPPED: Status.SKIPPED,
        State.MISSED: Status.MISSED,
    }
)


def states_of(word: str) -> frozenset[State]:
    """The states that a status word or a state word stands for; empty for a word that is neither."""
    by_status = frozenset(state for state, status in STATUS_OF.items() if status == word)
    return by_status or frozenset(state for state in State if state.word == word)
