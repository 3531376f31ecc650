"""What the nemesis did, asked by worker and by time: which duplicates and gaps it explains."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from chaos.check.bounds import Bounds
from chaos.records import Fault

_NETWORK = frozenset({"delay", "stall", "reset", "halfOpen", "cutBeforeCommit", "cutAfterCommit", "partition"})
_DATABASE = frozenset({"postgresKill", "postgresStop", "outage", "diskFull"})
_HALTS = frozenset({"kill", "stop"})
_KILLS = frozenset({"kill", "poison"})
_HARMLESS = frozenset({"clockJump", "delay"})
"""What costs a worker neither a lease nor a result: only the database's clock says when a lease is over, and a delay is
a small part of one."""
_NODES = ("api", "scheduler", "worker")


def strikes_everybody(fault: Fault) -> bool:
    """Whether a fault kept every worker from the database: then each may have lost its lease, or an answer."""
    if fault.kind in _DATABASE or fault.target.startswith("postgres"):
        return True
    return fault.kind in _NETWORK and not fault.workers and not fault.target.startswith(_NODES)


def _is_api(fault: Fault) -> bool:
    return fault.target.startswith("api")


class FaultBook:
    def __init__(self, faults: Iterable[Fault], bounds: Bounds) -> None:
        self.all = sorted(faults, key=lambda fault: fault.began)
        self.aftermath = bounds.lease + bounds.slack
        """Seconds after a fault that still belong to it: a lease, and what shows only after it."""
        self._recovery = bounds.recovery + bounds.lateness
        self._schedulers = bounds.schedulers
        self._straggler = bounds.straggler
        self._everybody = [fault for fault in self.all if strikes_everybody(fault)]
        self._some = [fault for fault in self.all if fault.workers and fault.kind not in _HARMLESS]
        self._by_worker: dict[str, list[Fault]] = defaultdict(list)
        for fault in self._some:
            for worker in fault.workers:
                self._by_worker[worker].append(fault)

    def held(self, worker: str | None, start: float, end: float) -> bool:
        """Whether a fault can have cost this worker its lease, or a result, in [start, end].

        None: nobody knows which worker it was, so a fault of any worker will do that can have been it: none of those
        that had been killed by then.
        """
        if worker is None:
            own = [fault for fault in self._some if not self._is_death(fault) or fault.began + self._straggler >= start]
        else:
            own = self._by_worker.get(worker, [])
        return self._any(own, start, end) or self._any(self._everybody, start, end)

    def took(self, worker: str | None, start: float, end: float) -> bool:
        """Whether a fault can have cost this worker its lease in [start, end], and not merely an answer.

        No fault of the database does that, however long: nobody is declared dead until all had time to be heard again.
        """
        some = self._some if worker is None else self._by_worker.get(worker, [])
        return self._any((fault for fault in some if fault.kind not in _DATABASE), start, end)

    def upon(self, worker: str | None) -> list[Fault]:
        """What happened to this worker."""
        return [] if worker is None else self._by_worker.get(worker, [])

    def struck(self, node: str, start: float, end: float) -> bool:
        """Whether a fault of this process was on or felt in [start, end]."""
        return self._any((fault for fault in self.all if fault.target in {node, "all"}), start, end)

    def slowed(self, worker: str | None, start: float, end: float) -> bool:
        """Whether a fault of this worker's process was on or felt in [start, end], be it the slightest."""
        name = worker or ""
        return self._any((fault for fault in self.all if name.startswith(fault.target)), start, end)

    def cost_a_worker(self, start: float, end: float) -> bool:
        """Whether a fault that can have cost any worker its lease was on or felt in [start, end]."""
        return self._any(self._some, start, end) or self._any(self._everybody, start, end)

    def postponed(self, deadline: float) -> float:
        """A deadline, put off by the faults that were on or felt before it, and by what it takes to recover from them.

        Faults that come when those before are no longer felt have no part in it: else one campaign is one outage.
        """
        begins, ends = self._delaying
        position = bisect_right(begins, deadline)
        recovered = ends[position - 1] - self.aftermath + self._recovery if position else deadline
        return max(deadline, recovered)

    def quiet(self, at: float) -> bool:
        """Whether no fault was on, nor its aftermath: what is measured at such a moment is the product's own."""
        begins, ends = self._felt
        position = bisect_right(begins, at)
        return position == 0 or ends[position - 1] < at

    def next_after(self, at: float) -> float:
        """When the next fault strikes, whomever."""
        begins = self._begins
        position = bisect_right(begins, at)
        return begins[position] if position < len(begins) else math.inf

    def down(self, start: float, end: float) -> bool:
        """Whether the database was out of reach for everybody at some moment of [start, end]."""
        begins, ends = self._down
        position = bisect_right(begins, end)
        return position > 0 and ends[position - 1] >= start

    @cached_property
    def unattended(self) -> list[tuple[float, float]]:
        """When no scheduler was running."""
        if not self._schedulers:
            return []
        found = [(0.0, math.inf)]
        for name in self._schedulers:
            halted = (each for each in self.all if each.target == name and each.kind in _HALTS)
            mine = zip(*_merged((each.began, each.ended) for each in halted), strict=True)
            found = [(max(a, c), min(b, d)) for c, d in mine for a, b in found if max(a, c) < min(b, d)]
        return found

    @cached_property
    def _delaying(self) -> tuple[list[float], list[float]]:
        """Times at which runs may have been held up that nobody has to hand in; with APIs they have nothing to do."""
        felt = (each for each in self.all if each.kind not in _HARMLESS and (each.workers or not _is_api(each)))
        return _merged((fault.began, fault.ended + self.aftermath) for fault in felt)

    @cached_property
    def _begins(self) -> list[float]:
        return [fault.began for fault in self.all]

    @cached_property
    def _felt(self) -> tuple[list[float], list[float]]:
        return _merged((fault.began, fault.ended + self.aftermath) for fault in self.all)

    @cached_property
    def _down(self) -> tuple[list[float], list[float]]:
        return _merged((fault.began, fault.ended) for fault in self._everybody)

    def jumped(self, worker: str | None, at: float) -> bool:
        """Whether this worker's clock may have been wrong at this moment; of one that nobody knows, any worker's."""
        node, known, _ = ("" if worker is None else worker).partition(".")
        jumps = (f for f in self.all if f.kind == "clockJump" and f.target.startswith(node if known else "worker"))
        return any(f.began - 1 <= at <= f.ended + self.aftermath for f in jumps)

    def death(self, worker: str, after: float) -> float | None:
        """When this worker was killed next."""
        mine = (f for f in self._by_worker.get(worker, []) if self._is_death(f))
        return next((f.began for f in mine if f.began >= after), None)

    @staticmethod
    def _is_death(fault: Fault) -> bool:
        """Whether the worker that it names was gone; that of a killed gateway was not."""
        return fault.kind in _KILLS and fault.target.startswith("worker")

    def _any(self, faults: Iterable[Fault], start: float, end: float) -> bool:
        return any(fault.began <= end and fault.ended + self.aftermath >= start for fault in faults)


def _merged(spans: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Spans in order of their beginning, made into such as do not touch: all beginnings, all ends."""
    begins: list[float] = []
    ends: list[float] = []
    for begin, end in spans:
        if ends and begin <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            begins.append(begin)
            ends.append(end)
    return begins, ends
