"""What a worker's log says of attempts that failed: a line each, as long as somebody can read them.

The kind of an error, not its words: those may be a tenant's own, and are encrypted where they are kept.
"""

from collections.abc import Sequence
from typing import Final

import structlog

from foliot.domain.ids import encode
from foliot.domain.states import Event
from foliot.kit.clock import Steady, steady
from foliot.store.dispatch import Settlement

log = structlog.get_logger("worker")

MOST: Final = 20
"""Lines a second; further failures of that second are counted together."""


class Failures:
    def __init__(self, clock: Steady = steady) -> None:
        self._clock = clock
        self._since = float("-inf")
        self._told = self._untold = 0

    def tell(self, failed: Sequence[Settlement]) -> None:
        """These have failed, and that is on record."""
        if (now := self._clock()) - self._since >= 1:
            if self._untold:
                log.warning("further attempts failed", attempts=self._untold)
            self._since, self._told, self._untold = now, 0, 0
        shown = failed[: MOST - self._told]
        for each in shown:
            _say(each)
        self._told += len(shown)
        self._untold += len(failed) - len(shown)


def _say(settlement: Settlement) -> None:
    run, outcome = settlement.run, settlement.outcome
    said = log.bind(run=encode("run", run.id), attempt=run.attempt + 1, kind=outcome.error_class or outcome.ending.word)
    if outcome.delay is not None:
        said.warning("an attempt failed", again_in=f"{outcome.delay.total_seconds():.1f}s")
    elif outcome.event is Event.DIED:
        said.warning("a run failed for good: it is a dead letter")
    else:
        said.warning("a run ended, and nobody knows how")
    said.debug("what it said", error=outcome.error)
