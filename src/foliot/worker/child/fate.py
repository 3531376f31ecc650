"""How a child came to its end."""

import os
import signal
from typing import NamedTuple


class Fate(NamedTuple):
    """`status` as the system gives it; none if nobody saw the end, because the guard was killed."""

    status: int | None
    lapsed: bool = False
    """The guard ended it: the supervisor had not renewed its lease."""

    @property
    def signal(self) -> int:
        """The signal that killed it; 0 if none did."""
        return os.WTERMSIG(self.status) if self.status is not None and os.WIFSIGNALED(self.status) else 0

    def __str__(self) -> str:
        """What follows "its process …"."""
        if self.status is None:
            return "was lost, with its guard"
        if not self.signal:
            return f"ended with status {os.waitstatus_to_exitcode(self.status)}"
        try:
            name = signal.Signals(self.signal).name
        except ValueError:
            name = f"signal {self.signal}"
        # We send this one too, but then nobody asks how it ended.
        return f"was killed by {name}" + (", as a rule because memory ran out" if self.signal == signal.SIGKILL else "")
