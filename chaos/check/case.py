"""All evidence, put in order in one pass: runs, jobs, calls and faults by name."""

from functools import cached_property
from typing import Any

from chaos.check.bounds import Bounds
from chaos.check.calls import NO_RUNS, group, submission_of, submitted
from chaos.check.facts import Call, Job, Run
from chaos.check.faultbook import FaultBook
from chaos.check.jobs import read_jobs
from chaos.check.wiring import Graphs
from chaos.oracle import instant, seconds
from chaos.records import Effect, Evidence, Operation, Phase


class Case:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.bounds = Bounds.of(evidence.settings)
        self.faults = FaultBook(evidence.faults, self.bounds)
        self.cutoff = evidence.dump.taken - self.bounds.unjudged(quiet=evidence.dump.quiet)
        self.began = min((each.invoked for each in evidence.operations), default=evidence.dump.taken)
        self.runs: dict[str, Run] = {}
        self.jobs: dict[str, Job] = {}
        self.calls = group(evidence.operations)
        self.phantom_jobs: list[dict[str, Any]] = []
        self.misplaced: list[tuple[str, str]] = []
        """Jobs that the dump shows to the wrong tenant: (shown to, job)."""
        self._read_ledger()
        self._read_runs()
        self._read_submissions()
        read_jobs(self)
        self._read_instants()
        self._hand_out_runs()

    def run(self, name: str) -> Run:
        found = self.runs.get(name)
        if found is None:
            found = self.runs[name] = Run(name)
        return found

    def worker_of(self, effect: Effect) -> str | None:
        """The worker's boot id, or else the product's own name of it; None if nobody knows.

        HTTP targets do not see who calls, so the claim that they name is asked.
        """
        return effect.worker or self.holder_of(effect.fence)

    def holder_of(self, fence: int) -> str | None:
        """Whose claim it was, as `worker_of`."""
        return self._boots_by_fence.get(fence)

    def bodies_of(self, run: Run) -> list[dict[str, Any]]:
        """How the run may have been defined."""
        if run.submission is not None and run.submission.operation.kind != "runJob":
            return [run.submission.body]
        job = None if run.job is None else self.jobs.get(run.job)
        return [] if job is None else job.bodies()

    def owner_of(self, run: Run) -> str | None:
        if run.submission is not None:
            return run.submission.operation.tenant
        job = None if run.job is None else self.jobs.get(run.job)
        return None if job is None else job.tenant

    def replays(self, run: Run) -> list[float]:
        """When it was let go on after its attempts had been used up, by the product's own record; S18 looks at that."""
        return [row["at"] for row in self._replayed(run)]

    def turn_of(self, run: Run, attempt: dict[str, Any]) -> int:
        """How often the run had been let go on when this attempt ended; of one and the same moment its number tells."""
        ended = seconds(attempt["finishedAt"]), attempt["attempt"]
        return sum((row["at"], row["attempts"]) < ended for row in self._replayed(run))

    def _replayed(self, run: Run) -> list[dict[str, Any]]:
        return [row for row in self.evidence.dump.decided.get(run.id, ()) if row["deed"] == "replayed"]

    @cached_property
    def cancels(self) -> dict[str, list[Operation]]:
        """Who wanted a run to end, by run."""
        found: dict[str, list[Operation]] = {}
        for each in self.evidence.operations:
            if each.kind == "cancelRun" and each.run is not None:
                found.setdefault(each.run, []).append(each)
        return found

    @cached_property
    def backfills(self) -> dict[str, list[Call]]:
        """Who wanted the past of a job to be filled, by job."""
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            if call.first.kind == "backfillJob" and call.first.job is not None:
                found.setdefault(call.first.job, []).append(call)
        return found

    @cached_property
    def graphs(self) -> Graphs:
        return Graphs(self)

    @cached_property
    def restarted(self) -> list[Run]:
        """Runs that began more than once."""
        return [run for run in self.runs.values() if len(run.starts) > 1]

    @cached_property
    def _boots_by_fence(self) -> dict[int, str]:
        """One claim belongs to one worker: what one of its runs says holds for all; so does a worker's own id."""
        boots = {each.fence: each.worker for run in self.runs.values() for each in run.starts if each.worker}
        rows = [row for rows in self.evidence.dump.attempts.values() for row in rows if row["workerId"]]
        known = {row["workerId"]: boots[row["fence"]] for row in rows if row["fence"] in boots}
        return {row["fence"]: known.get(row["workerId"], row["workerId"]) for row in rows} | boots

    def _read_ledger(self) -> None:
        runs, start, end, rejected = self.runs, Phase.START, Phase.END, Phase.REJECTED
        for effect in self.evidence.effects:
            run = runs.get(effect.run)
            if run is None:
                run = runs[effect.run] = Run(effect.run)
                run.job = effect.job
            phase = effect.phase
            if phase is start:
                run.starts.append(effect)
            elif phase is end:
                run.ends.append(effect)
            elif phase is rejected:
                run.rejected = [*run.rejected, effect]
            elif phase is Phase.BEAT:
                run.beats = [*run.beats, effect]

    def _read_runs(self) -> None:
        for tenant, rows in self.evidence.dump.runs.items():
            for row in rows:
                run = self.run(row["runId"])
                run.row = row
                run.job = row["jobId"]
                run.listed = [*run.listed, tenant] if run.listed else [tenant]
        for tenant, rows in self.evidence.dump.attempts.items():
            for row in rows:
                run = self.run(row["runId"])
                if run.attempts:
                    run.attempts.append(row)
                else:
                    run.attempts = [row]
                if tenant not in run.listed:
                    run.listed = [*run.listed, tenant]

    def _read_submissions(self) -> None:
        for call in self.calls:
            operation = call.answered
            if operation is None or operation.answer is None or operation.kind in NO_RUNS:
                continue
            for name, body in submitted(operation):
                run = self.run(name)
                run.submission = submission_of(call, operation, body)
                run.job = run.job or operation.job

    def _read_instants(self) -> None:
        for name, rows in self.evidence.dump.occurrences.items():
            if (job := self.jobs.get(name)) is not None:
                job.ledger = rows
        for rows in self.evidence.dump.missed.values():
            for row in rows:
                if (job := self.jobs.get(row["job"])) is not None:
                    job.missed.append((instant(row["from"]), instant(row["through"])))

    def _hand_out_runs(self) -> None:
        for name, backfills in self.evidence.dump.backfilled.items():
            if (job := self.jobs.get(name)) is not None:
                job.backfills = backfills
                job.backfilled.update(*backfills.values())
                job.by_hand.update(job.backfilled)
        for run in self.runs.values():
            if run.job is not None and (job := self.jobs.get(run.job)) is not None:
                job.runs.append(run)
                if run.submission is not None:
                    job.by_hand.add(run.id)
        for call in self.calls:
            if call.first.kind == "runJob" and call.unsure and call.first.job in self.jobs:
                self.jobs[call.first.job].unsure_by_hand.append(call.first)
