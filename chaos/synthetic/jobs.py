"""Pretended jobs: created, changed, paused, resumed, cancelled, fired, caught up, missed and skipped."""

from typing import Any, NamedTuple

import msgspec

from chaos.oracle import MICRO, body_of, patched
from chaos.records import Operation, Outcome
from chaos.synthetic.execution import Ended, Plan, carry_out, new_run, record
from chaos.synthetic.world import BEGIN, BOUNDS, LENGTH, World, rfc3339
from chaos.timeline import Gate, Standing

_GATES = {"pauseJob": Gate.PAUSED, "resumeJob": Gate.OPEN, "cancelJob": Gate.CANCELLED, "deleteJob": Gate.CANCELLED}


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
        self.body = {"name": f"job {self.id}", "payload": {"serial": self.id}, **body}
        self.created = BEGIN + world.between(1, 5)
        self.standings: list[tuple[float, Standing]] = [(self.created + 0.03, Standing(body_of(self.body)))]
        outcome = Outcome.OK if answered else Outcome.UNKNOWN
        answer = self.view() if answered else None
        world.operation("createJob", tenant, self.created, outcome, body=self.body, answer=answer)
        self.ended: Ended | None = None

    def view(self) -> dict[str, Any]:
        standing = self.standings[-1][1]
        fields = dict(standing.body)
        shown = {name: value for name, value in self.body.items() if name in fields}
        status = {Gate.OPEN: "pending", Gate.PAUSED: "paused", Gate.CANCELLED: "cancelled"}[standing.gate]
        return {
            **shown,
            "jobId": self.id,
            "tenant": self.tenant,
            "status": status,
            "scheduleType": _type(standing),
            "version": len(self.standings),
            "nextRunAt": None,
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
        for (begin, standing), end in zip(self.standings, ends, strict=True):
            if standing.gate is Gate.OPEN and standing.definition.recurring:
                self._fire(standing, [at / MICRO for at in standing.definition.instants(begin, end)])

    def _fire(self, standing: Standing, instants: list[float]) -> None:
        outage = next(fault for fault in self.world.faults if fault.target == "scheduler-0")
        back = outage.ended + 0.4
        late = [at for at in instants if outage.began <= at < back - BOUNDS.grace]
        if late[:-1]:
            self.world.missed[self.tenant].append({"job": self.id, "from": late[0], "through": late[-2]})
        for at in instants:
            if at not in late[:-1]:
                held_up = outage.began <= at < back
                self._occur(standing, at, back + 0.01 if held_up else self.world.available(at + 0.02))

    def _occur(self, standing: Standing, at: float, handled: float) -> None:
        payload = msgspec.json.decode(dict(standing.body)["payload"])
        run = new_run(self.world, self.tenant, self.id, at, payload)
        exclusive = standing.definition.overlap == "skip"
        if exclusive and self.ended is not None and self.ended.at > handled:
            record(self.world, run, handled, at, "skipped", handled, 0)
            return
        ended = carry_out(self.world, run, handled, at, self.plan)
        if self.ended is None or ended.at > self.ended.at:
            self.ended = ended


def _type(standing: Standing) -> str:
    definition = standing.definition
    return "recurring" if definition.recurring else "one_time" if definition.one_time else "on_demand"
