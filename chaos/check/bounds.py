"""How long things may take: as the product was set up, or its defaults; all in seconds."""

from typing import Any

import msgspec


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Read from `Evidence.settings`; what is not named there has the product's default."""

    lease: float = 15.0
    """Silence after which a worker is dead."""
    heartbeat: float = 5.0
    """How often a worker shows that it lives."""
    grace: float = 30.0
    """An instant handled within this time is on time."""
    lateness: float = 30.0
    """A start later than this, with no fault around, is a fault in itself."""
    duration: float = 10.0
    """The longest that a handler takes, time-outs included."""
    recovery: float = 30.0
    """The longest that the product needs after a fault has ended."""
    rest: float = 10.0
    """How long before a final read at rest an instant must lie to be judged: by then it has been fired, or never is."""
    slack: float = 10.0
    """How long after a lapsed lease its consequences may still show."""
    uncertainty: float = 0.25
    """δ: an instant this near to a change of its job may belong to either side."""
    linger: float = 60.0
    """How long after its client gave up a call may still take effect."""
    clock: float = 0.05
    """By how much two clocks of the same machine may differ."""
    early: float = 0.05
    """A start earlier than its time by more than this is early."""
    hold: float = 5.0
    """How long after a pause was acknowledged a worker may still begin what it held, besides `duration`."""
    guardian: float = 2.0
    """How long a fenced-out attempt may go on beside its successors, where a limit is set."""
    schedulers: tuple[str, ...] = ()
    """All processes that fire; without them nobody knows when none did."""
    stop: float = 20.0
    """How long what a worker holds may go on after it was asked to stop."""
    straggler: float = 3.0
    """How long after a process was stopped something that it had sent may still take effect."""
    hush: float = 0.5
    """How long before the noted end of a stand-still a process may already have been at work again."""
    remote: str = ""
    """How the boot ids of workers begin that come through the gateway."""
    revoked: float = 5.0
    """How long after a key was revoked some process may still believe in it."""
    attempts: str = "all"
    """`all`: the dump holds every attempt; `some`: those of runs that went well at their only start may be lacking."""

    @classmethod
    def of(cls, settings: dict[str, Any]) -> "Bounds":
        return msgspec.convert({name: settings[name] for name in cls.__struct_fields__ if name in settings}, cls)

    def unjudged(self, *, quiet: bool) -> float:
        """How long before the final read the last instant must lie to be judged.

        If it was read while nothing moved any more, whatever lateness and duration there may be has been waited for.
        """
        return self.rest if quiet else self.lateness + self.duration + self.recovery
