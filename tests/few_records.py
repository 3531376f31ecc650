"""A history of a few records, for checks that look at few."""

from datetime import datetime
from typing import Any

import msgspec

from chaos.check import Case
from chaos.check.recovery import promised
from chaos.check.waits import first_starts
from chaos.records import Dump, Effect, Evidence, Fault, Operation, Outcome, Phase
from chaos.synthetic.world import BEGIN, rfc3339


class History:
    """A few records; instants are seconds since the beginning."""

    def __init__(self) -> None:
        dump = Dump(taken=BEGIN + 1_000, jobs={"acme": []}, runs={"acme": []}, attempts={"acme": []})
        self.evidence = Evidence(seed=1, operations=[], effects=[], faults=[], dump=dump)

    def job(self, name: str, made: float, **body: Any) -> None:
        body = {"name": name, **body}
        answer = {"jobId": name, "tenant": "acme", "status": "pending", "scheduleType": "recurring", **body}
        self.call("createJob", made, body=body, answer=answer)
        self.evidence.dump.jobs["acme"].append({**answer, "createdAt": rfc3339(BEGIN + made), "nextRunAt": None})

    def call(self, kind: str, at: float, **more: Any) -> None:
        number, invoked = len(self.evidence.operations) + 1, BEGIN + at
        common = {"client": 1, "tenant": "acme", "outcome": Outcome.OK, "completed": invoked + 0.01}
        self.evidence.operations.append(Operation(number=number, kind=kind, invoked=invoked, **{**common, **more}))

    def run(self, name: str, made: float, *starts: tuple[float, str, int], job: str | None = None, **more: Any) -> None:
        """`starts`: when, by which worker, with which fence."""
        scheduled = more.get("scheduled", made)
        at = rfc3339(BEGIN + scheduled) if isinstance(scheduled, float | int) else scheduled
        row = {"runId": name, "jobId": job, "scheduledAt": at, "dueAt": at, "createdAt": rfc3339(BEGIN + made)}
        ended = {"status": "completed", "finishedAt": rfc3339(BEGIN + 900), "attempts": 1}
        self.evidence.dump.runs["acme"].append({**row, **ended})
        for when, worker, fence in starts:
            self.effect(Phase.START, when, name, worker, fence, job, msgspec.convert(at, datetime).timestamp())

    def effect(self, phase: Phase, at: float, run: str, worker: str, fence: int, job: str | None, due: float) -> None:
        told = {"attempt": 1, "fence": fence, "worker": worker, "job": job, "scheduled_at": due, "nonce": str(fence)}
        number = len(self.evidence.effects) + 1
        self.evidence.effects.append(
            Effect(seq=number, at=BEGIN + at, phase=phase, tenant="acme", run=run, payload="", **told)
        )

    def attempt(self, run: str, fence: int, status: str, ended: float, worker: str = "wrk_1", number: int = 1) -> None:
        row = {"runId": run, "jobId": None, "attempt": number, "fence": fence, "status": status, "workerId": worker}
        times = {"scheduledAt": rfc3339(BEGIN), "startedAt": rfc3339(BEGIN), "finishedAt": rfc3339(BEGIN + ended)}
        self.evidence.dump.attempts["acme"].append({**row, **times})

    def fault(self, kind: str, target: str, began: float, ended: float, *workers: str) -> None:
        times = {"began": BEGIN + began, "ended": BEGIN + ended}
        self.evidence.faults.append(Fault(kind=kind, target=target, workers=list(workers), **times))

    def late(self) -> list[float]:
        return [round(each.late, 3) for each in first_starts(Case(self.evidence))]

    def recovery(self, name: str) -> dict[str, Any]:
        return promised(Case(self.evidence))[name]
