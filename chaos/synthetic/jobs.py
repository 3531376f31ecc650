"""Pretended jobs: created, changed, paused, resumed, cancelled, fired, caught up, missed and skipped."""

from typing import Any, NamedTuple

import msgspec

from chaos.oracle import MICRO, Definition, body_of, patched
from chaos.records import QUEUES, Operation, Outcome
from chaos.synthetic.execution import Plan, carry_out, new_run, record
from chaos.synthetic.world import BEGIN, BOUNDS, LENGTH, World, rfc3339
from chaos.timeline import Gate, Standing

_GATES = {"pauseJob": Gate.PAUSED, "resumeJob": Gate.OPEN, "cancelJob": Gate.CANCELLED, "deleteJob": Gate.CANCELLED}


_MOST_THERE = {"skip": 1, "queueOne": 2}
"""How many scheduled runs there may be before the next is skipped."""


class Change(NamedTuple):
    """One call on a job: when, what, and whether it was answered and took effect."""

    at: float
    kind: str
    patch: dict[str, Any] | None = None
    answered: bool = True
    happened: bool = True


class Pretended:
    """One job and how it really stood over time."""

    def __init__(self, world: World, tenant: str, body: dict[str, Any], plan: Plan, *, answered: bool = True) -> None:
        self.world, self.tenant, self.plan = world, tenant, plan
        self.id = world.number("job")
        self.body = {"name": f"job {self.id}", "handler": "quick", "payload": {"serial": self.id}, **body}
        self.created = BEGIN + world.between(1, 5)
        self.standings: list[tuple[float, Standing]] = [(self.created + 0.03, Standing(body_of(self.body)))]
        outcome = Outcome.OK if answered else Outcome.UNKNOWN
        answer = self.view() if answered else None
        world.operation("createJob", tenant, self.created, outcome, body=self.body, answer=answer)
        self._ends: list[float] = []
        """When its scheduled runs that are still there will be through, in order."""
        self.place = world.dice.random()
        """Where in any jitter window it starts, as a share of it."""
        self.left: int | None = None
        """Of maxRuns."""

    def view(self) -> dict[str, Any]:
        since, standing = self.standings[-1]
        fields = dict(standing.body)
        shown = as_shown({name: value for name, value in self.body.items() if name in fields})
        status = {Gate.OPEN: "pending", Gate.PAUSED: "paused", Gate.CANCELLED: "cancelled"}[standing.gate]
        return {
            **shown,
            "jobId": self.id,
            "tenant": self.tenant,
            "status": status,
            "scheduleType": _type(standing),
            "version": len(self.standings),
            "nextRunAt": None,
            "holdsBy": rfc3339(since + BOUNDS.lease) if standing.gate is Gate.PAUSED else None,
        }

    def change(self, change: Change) -> Operation:
        before = self.standings[-1][1]
        if change.happened:
            if change.kind == "changeJob":
                patch = change.patch or {}
                after = Standing(patched(before.body, patch), before.gate)
                self.body = {**self.body, **patch}
            else:
                after = Standing(before.body, _GATES[change.kind])
            self.standings.append((BEGIN + change.at + 0.03, after))
        outcome = Outcome.OK if change.answered else Outcome.UNKNOWN
        return self.world.operation(
            change.kind,
            self.tenant,
            BEGIN + change.at,
            outcome,
            job=self.id,
            body=change.patch,
            answer=self.view() if change.answered else None,
        )

    def finish(self) -> None:
        """Put the job, and all that its schedule made of it, on record."""
        self.world.jobs[self.tenant].append({**self.view(), "createdAt": rfc3339(self.created + 0.03)})
        ends = [at for at, _ in self.standings[1:]] + [BEGIN + LENGTH + 20]
        limit = None
        for (begin, standing), end in zip(self.standings, ends, strict=True):
            definition = standing.definition
            if definition.max_runs != limit:
                limit = self.left = definition.max_runs
            if definition.recurring and standing.gate is not Gate.CANCELLED:
                instants = [at / MICRO for at in definition.instants(begin, end)]
                (self._fire if standing.gate is Gate.OPEN else self._pass_by)(standing, instants)

    def _pass_by(self, _: Standing, instants: list[float]) -> None:
        for at in instants:
            self._list(at, "skipped", "the job was paused")

    def _fire(self, standing: Standing, instants: list[float]) -> None:
        outage = next(fault for fault in self.world.faults if fault.target == "scheduler-0")
        back = outage.ended + 0.4
        late = [at for at in instants if outage.began <= at < back - BOUNDS.grace]
        wanted = _wanted(standing.definition, late, back)
        if passed := [at for at in late if at not in wanted and self.left != 0]:
            gap = {"job": self.id, "from": passed[0], "through": passed[-1], "opened": back + 0.01}
            self.world.missed[self.tenant].append(gap)
        for at in instants:
            if self.left == 0:
                return
            if at in passed:
                self._list(at, "missed", "it came up late")
                continue
            held_up = outage.began <= at < back
            handled = back + 0.01 if held_up else self.world.available(at + 0.02)
            self._occur(standing, at, handled, self._offset(standing.definition, at, is_late=at in late))

    def _offset(self, definition: Definition, at: float, *, is_late: bool) -> float:
        """Seconds to its place: always the same one, in whole milliseconds; of short distances what is left of it."""
        if not definition.jitter or is_late:
            return 0.0
        place = int(self.place * definition.jitter / 1_000) / 1_000
        following = definition.nominal(at, at + definition.jitter / MICRO)
        return round(place % (following[0] / MICRO - at), 3) if following else place

    def _occur(self, standing: Standing, at: float, handled: float, offset: float) -> None:
        payload = msgspec.json.decode(dict(standing.body)["payload"])
        run = new_run(self.world, self.tenant, self.id, at, payload)
        self._ends = [end for end in self._ends if end > handled]
        if len(self._ends) >= _MOST_THERE.get(standing.definition.overlap, 1_000):
            record(self.world, run, handled, at, "skipped", handled, 0)
            self._list(at, "skipped", "the previous run was still going")
            return
        turn = self._ends[-1] + 0.06 if self._ends and standing.definition.overlap in QUEUES else 0.0
        ended = carry_out(self.world, run, handled, round(at + offset, 6), self.plan, turn=turn)
        if self.left is not None:
            self.left -= 1
        self._list(at, "fired", None)
        self._ends = sorted([*self._ends, ended.at])

    def _list(self, at: float, status: str, reason: str | None) -> None:
        """What the product's own ledger says of an instant, and of the run that it has just made."""
        row = self.world.runs[self.tenant][-1] if status == "fired" else {}
        told = {"runId": row.get("runId"), "runStatus": row.get("status"), "dueAt": row.get("dueAt")}
        rows = self.world.occurrences.setdefault(self.id, [])
        rows.append({"at": rfc3339(at), "status": status, "reason": reason, **told})


def as_shown(body: dict[str, Any]) -> dict[str, Any]:
    """How the API spells what a job's owner wrote, and what is usual where that was nothing."""
    usual: dict[str, Any] = {"key": None, "priority": "normal", "queue": "default", "labels": {}, "maxRetries": 3}
    usual |= {"timeoutSeconds": 300.0, "delivery": "atLeastOnce", "onDisconnect": "finish"}
    handler = body.get("handler", "quick")
    address = {"type": "http", "url": handler, "method": "POST", "headers": {}}
    return {
        **usual,
        **body,
        "handler": address if "://" in handler else {"type": "function", "name": handler},
        "backoff": {"initial": "PT1S", "factor": 2.0, "max": "PT10M"} | body.get("backoff", {}),
        "priority": {0: "high"}.get(body.get("priority", 1), "normal"),
    }


def _wanted(definition: Definition, late: list[float], back: float) -> list[float]:
    """Which of its late instants a job still wants when they are noticed."""
    inside = [at for at in late if back - at <= definition.window / MICRO]
    return {"all": inside, "latest": [at for at in inside if at == late[-1]], "none": []}[definition.catch_up]


def _type(standing: Standing) -> str:
    definition = standing.definition
    return "recurring" if definition.recurring else "one_time" if definition.one_time else "on_demand"
