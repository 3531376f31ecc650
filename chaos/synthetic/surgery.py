"""Tools to plant one fault in a clean history: finding what fits, and changing it in all records alike."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from chaos.oracle import seconds
from chaos.records import Effect, Evidence, Operation, Outcome, Phase
from chaos.synthetic.world import BEGIN, LENGTH, QUIET, rfc3339

Row = dict[str, Any]


class Plant(NamedTuple):
    """A fault: the check that must find it, and how to plant it. No other S-check may say anything."""

    check: str
    apply: Callable[["Surgery"], None]


PLANTS: dict[str, Plant] = {}


def plant(name: str) -> Callable[[Callable[["Surgery"], None]], Callable[["Surgery"], None]]:
    """Register a fault under `<check> <rule>`."""

    def register(apply: Callable[["Surgery"], None]) -> Callable[["Surgery"], None]:
        PLANTS[name] = Plant(name.split(maxsplit=1)[0], apply)
        return apply

    return register


class Surgery:
    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.dump = evidence.dump

    def runs(self) -> list[Row]:
        return [row for rows in self.dump.runs.values() for row in rows]

    def jobs(self) -> list[Row]:
        return [row for rows in self.dump.jobs.values() for row in rows]

    def submissions(self) -> dict[str, Operation]:
        answered = (each for each in self.evidence.operations if each.kind == "createRun" and each.answer)
        return {each.answer["runId"]: each for each in answered if each.answer}

    def plain_run(self, *fields: str) -> Row:
        """An acknowledged ad-hoc run of quiet times that completed at its first attempt, and that nobody cancelled."""
        asked = {each.run for each in self.answered("cancelRun")}
        plain = ((name, each) for name, each in self.submissions().items() if each.key is None and name not in asked)
        bodies = {name: each.body or {} for name, each in plain}
        for row in self.runs():
            given = bodies.get(row["runId"])
            if given is None or self.tries(row) != ["completed"] or seconds(row["createdAt"]) < QUIET:
                continue
            if _is_usual(given) and {"callback", "concurrency", "runAt"} & given.keys() == set(fields):
                return row
        raise LookupError("no plain run")

    def retried_run(self, *tries: str) -> Row:
        """An acknowledged ad-hoc run with these attempts."""
        given = self.submissions()
        keyed = {effect.run for effect in self.evidence.effects if effect.concurrency_key}
        return next(
            row
            for row in self.runs()
            if row["runId"] in given
            and _is_usual(given[row["runId"]].body or {})
            and self.tries(row) == list(tries)
            and row["runId"] not in {*keyed, *self.dump.decided}
        )

    def job_with(self, *fields: str) -> Row:
        """An acknowledged job with exactly these schedule fields that was never changed."""
        changed = {each.job for each in self.evidence.operations if each.job}
        sure = {each.answer["jobId"] for each in self.answered("createJob") if each.answer}
        names = {"every", "cronExpression", "scheduleAt", "endsAt", "overlap", "catchUp", "jitter", "maxRuns"}
        for row in self.jobs():
            given = {name for name in names if row.get(name) is not None}
            if row["jobId"] in sure - changed and given == set(fields):
                return row
        raise LookupError(f"no job with {fields}")

    def occurrences(self, job: Row) -> list[Row]:
        """Its runs in quiet times, in order, the last minute left out."""
        found = [
            row
            for row in self.runs()
            if row["jobId"] == job["jobId"] and QUIET < seconds(row["scheduledAt"]) < BEGIN + LENGTH - 60
        ]
        return sorted(found, key=lambda row: str(row["scheduledAt"]))

    def attempts(self, run: Row) -> list[Row]:
        return [row for rows in self.dump.attempts.values() for row in rows if row["runId"] == run["runId"]]

    def tries(self, run: Row) -> list[str]:
        return [row["status"] for row in self.attempts(run)]

    def effects(self, run: Row, *phases: Phase) -> list[Effect]:
        wanted = phases or tuple(Phase)
        return [each for each in self.evidence.effects if each.run == run["runId"] and each.phase in wanted]

    def tenant_of(self, row: Row) -> str:
        return next(name for name, rows in (*self.dump.runs.items(), *self.dump.jobs.items()) if row in rows)

    def forget(self, run: Row, *, row: bool = True, attempts: bool = True, phases: tuple[Phase, ...] = ()) -> None:
        """Remove a run from what the product says, and these effects from the ledger."""
        for rows in self.dump.runs.values():
            if row and run in rows:
                rows.remove(run)
        for rows in self.dump.attempts.values():
            if attempts:
                rows[:] = [each for each in rows if each["runId"] != run["runId"]]
        self.evidence.effects[:] = [
            each for each in self.evidence.effects if each.run != run["runId"] or each.phase not in phases
        ]

    def erase(self, run: Row) -> None:
        self.forget(run, phases=tuple(Phase))

    def copy(self, run: Row, name: str, shift: float) -> Row:
        """The same run once more under another id, `shift` seconds later."""
        again = {**run, "runId": name, **self._moved(run, shift, "createdAt", "finishedAt")}
        self.dump.runs[self.tenant_of(run)].append(again)
        for row in self.attempts(run):
            later = {**row, "runId": name, **self._moved(row, shift, "startedAt", "finishedAt")}
            self.dump.attempts[self.tenant_of(run)].append({**later, "fence": row["fence"] + 100_000})
        for effect in self.effects(run):
            twin = copy.copy(effect)
            twin.run, twin.at, twin.fence, twin.nonce = name, effect.at + shift, effect.fence + 100_000, name
            self.add(twin)
        return again

    def move(self, run: Row, shift: float) -> None:
        run.update(self._moved(run, shift, "finishedAt"))
        for row in self.attempts(run):
            row.update(self._moved(row, shift, "startedAt", "finishedAt"))
        for effect in self.effects(run):
            effect.at += shift
        self.sort()

    def add(self, effect: Effect) -> None:
        self.evidence.effects.append(effect)
        self.sort()

    def sort(self) -> None:
        self.evidence.effects.sort(key=lambda effect: effect.at)

    def answered(self, kind: str) -> list[Operation]:
        return [each for each in self.evidence.operations if each.kind == kind and each.outcome is Outcome.OK]

    @staticmethod
    def _moved(row: Row, shift: float, *names: str) -> Row:
        return {name: rfc3339(seconds(row[name]) + shift) for name in names if row[name] is not None}


def _is_usual(body: Row) -> bool:
    """Not one of the odd kinds, about which other records tell as well."""
    return body["handler"] == "quick" and "queue" not in body
