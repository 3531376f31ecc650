"""A test process apart for tests that mostly wait: what they leave idle, others use.

In the midst of the others, whoever waits for a lease to end would keep one of their processes waiting with it.
"""

from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import WorkStealingScheduling

WAITING: Final = (
    "tests/chaos/test_harness_end_to_end.py",
    "tests/chaos/test_schedulers.py",
    "tests/faults/",
    "tests/kit/test_postgres",
)
"""Tests that wait for longer than they work."""


class Beside(WorkStealingScheduling):
    """The last process begins with the tests that wait; the rest is shared out as usual, and whoever is done helps."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._is_shared_out = False

    def check_schedule(self) -> None:
        if not self._is_shared_out:
            self._is_shared_out = True
            self._set_aside()
        super().check_schedule()

    def _set_aside(self) -> None:
        assert self.collection is not None
        waiting = {index for index in self.pending if self.collection[index].startswith(WAITING)}
        self.pending = sorted({*self.pending} - waiting)
        last = max(self.nodes, key=lambda node: node.gateway.id)
        self.node2pending[last] = sorted(waiting)
        last.send_runtest_some(self.node2pending[last])


def scheduler(config: pytest.Config, log: Producer) -> Beside | None:
    """None where there is no process to spare."""
    is_to_spare = config.getoption("dist") == "worksteal" and (config.getoption("numprocesses") or 0) > 2
    return Beside(config, log) if is_to_spare else None
