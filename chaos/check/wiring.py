"""Graphs as their owners wrote them: which job waits for which end of which other."""

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from chaos.check.facts import Job, Run

if TYPE_CHECKING:
    from chaos.check.case import Case

Needs = list[tuple[str, str]]
"""Parents, and which end of each."""


class Graphs:
    """Which jobs wait for which, as their owners wrote it."""

    def __init__(self, case: "Case") -> None:
        self._case = case
        self.needs: dict[str, Needs] = {}
        self._by_instant: dict[str, dict[int | None, list[Run]]] = {}
        for job in case.jobs.values():
            written = [each["dependsOn"] for each in job.bodies() if each.get("dependsOn")]
            if written:
                self.needs[job.id] = [self._need(job, each) for each in written[0]]

    @cached_property
    def _keys(self) -> dict[tuple[str, Any], str]:
        return {
            (job.tenant, body["key"]): job.id
            for job in self._case.jobs.values()
            for body in job.bodies()
            if body.get("key")
        }

    def _need(self, job: Job, written: Any) -> tuple[str, str]:
        named, when = (written, "success") if isinstance(written, str) else (written["job"], written["when"])
        return self._keys.get((job.tenant, named), named), when

    def runs_of(self, job: str) -> dict[int | None, list[Run]]:
        """By the instant of their graph; all those of a job that runs once count as of one."""
        if job not in self._by_instant:
            found: dict[int | None, list[Run]] = defaultdict(list)
            known = self._case.jobs.get(job)
            for run in known.runs if known is not None else ():
                found[None if self._is_once(job) else run.instant].append(run)
            self._by_instant[job] = found
        return self._by_instant[job]

    def parents(self, run: Run) -> list[tuple[str, Run | None]]:
        """Its parents in the same graph, and what it waits for of each."""
        instant = None if self._is_once(run.job or "") else run.instant
        return [
            (when, next(iter(self.runs_of(parent).get(instant, [])), None))
            for parent, when in self.needs.get(run.job or "", ())
        ]

    def _is_once(self, job: str) -> bool:
        above = self.needs.get(job)
        if above:
            return self._is_once(above[0][0])
        known = self._case.jobs.get(job)
        return known is not None and any(each.one_time for each in known.definitions)

    def may_wait(self, run: Run) -> bool:
        """Whether it is blocked rightly: a parent that must succeed has died, and nobody has let it go on."""
        return any(
            when == "success"
            and parent is not None
            and (parent.status == "failed" or (parent.status == "pending" and self.may_wait(parent)))
            for when, parent in self.parents(run)
        )
