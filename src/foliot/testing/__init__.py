"""For the tests of an application: its functions run here and now, on a clock that moves when it is told to."""

from foliot.testing.clock import ManualClock
from foliot.testing.inline import Inline
from foliot.testing.runs import Attempt, InlineRun

__all__ = ["Attempt", "Inline", "InlineRun", "ManualClock"]
