"""How often each rare path was taken: a run that never took one has not tested it."""

from chaos.check.audit import told
from chaos.check.budget import Budget
from chaos.check.cancel import cancels
from chaos.check.case import Case
from chaos.check.command import commanded, is_command
from chaos.check.confided import indiscretions
from chaos.check.facts import Call, Job, Run
from chaos.check.forbidden import held_back
from chaos.check.gate import paused_runs
from chaos.check.graph import woven
from chaos.check.guardian import stopped_in_time
from chaos.check.keys import key_uses
from chaos.check.letters import HAND
from chaos.check.newest import superseded
from chaos.check.poison import quarantines
from chaos.check.rare_lines import waited
from chaos.check.rations import refusals
from chaos.check.retries import is_at_most_once
from chaos.check.reuse import reuses
from chaos.check.sealed import kept
from chaos.check.versions import edits
from chaos.oracle import seconds
from chaos.records import Outcome


def rare_paths(case: Case) -> dict[str, int]:
    runs = case.runs.values()
    done, not_done = _ambiguous(case)
    rows = [run.row for run in runs if run.row is not None]
    attempts = [row for rows_ in case.evidence.dump.attempts.values() for row in rows_]
    return {
        "lease take-overs": sum(_taken_over(case, run) for run in case.restarted)
        + sum(row["status"] == "lost" for row in attempts),
        "zombie rejections": sum(len(run.rejected) for run in runs) + sum(_late_results(run) for run in case.restarted),
        "late writes": sum(fault.late for fault in case.faults.all),
        "ambiguous calls done": done,
        "ambiguous calls not done": not_done,
        "misfires": sum(len(job.missed) for job in case.jobs.values()) + _count(rows, "missed"),
        "retries": sum(row["status"] in {"failed", "timed_out"} and row["attempt"] > 0 for row in attempts),
        "time-outs": sum(row["status"] == "timed_out" for row in attempts),
        "dead letters": _count(rows, "failed"),
        "replayed letters by hand": _decided(case, "replayed", by_hand=True),
        "replayed letters by filter": _decided(case, "replayed", by_hand=False),
        "discarded letters by hand": _decided(case, "discarded", by_hand=True),
        "discarded letters by filter": _decided(case, "discarded", by_hand=False),
        "replayed letters that ended well": sum(run.status == "completed" for run in runs if case.replays(run)),
        "snoozes": sum(row["status"] == "snoozed" for row in attempts),
        "effects in the run's transaction": len(case.evidence.dump.booked),
        "effects taken back": sum(len(run.starts) > 1 for run in runs if run.id in case.evidence.dump.booked),
        "committed by its caller": _inside(case, Outcome.OK),
        "rolled back by its caller": _inside(case, Outcome.FAIL),
        "cut when its caller committed": _inside(case, Outcome.UNKNOWN),
        "tenants weighed anew": sum(each.kind == "weighTenant" for each in case.evidence.operations),
        "runs held back by a paused queue": len(paused_runs(case)),
        "attempts of a remote worker": sum(_remote(case, run) for run in runs),
        "stopped before the end of a lease": sum(stopped_in_time(case, run) for run in runs),
        "unknown ends": sum(row["status"] == "unknown" for row in attempts),
        "skipped overlaps": _count(rows, "skipped"),
        "late instants caught up": sum(_caught_up(case, run) for job in case.jobs.values() for run in job.runs),
        "jittered runs": sum(_jittered(run) for job in case.jobs.values() for run in job.runs),
        "maxRuns reached": sum(_used_up(case, job) for job in case.jobs.values()),
        "back-filled runs": sum(len(job.backfilled) for job in case.jobs.values()),
        "ledger rows compared": sum(len(job.ledger) for job in case.jobs.values()),
        "cancelled pending runs": _count(rows, "cancelled"),
        "idempotent repeats": sum(_repeated(call) for call in case.calls),
        **quarantines(case),
        **waited(case),
        **cancels(case),
        **woven(case),
        **commanded(case),
        **_commanded_once(case),
        **superseded(case),
        **key_uses(case),
        **edits(case),
        **told(case),
        **refusals(case),
        **kept(case),
        **reuses(case),
        **held_back(case),
        **indiscretions(case),
    }


def _decided(case: Case, deed: str, *, by_hand: bool) -> int:
    rows = (row for rows_ in case.evidence.dump.decided.values() for row in rows_)
    return sum(row["deed"] == deed and (row["by"] == HAND) == by_hand for row in rows)


def _inside(case: Case, outcome: Outcome) -> int:
    calls = (call.first for call in case.calls if call.first.kind == "submitInside")
    return sum(each.outcome is outcome and each.answer is not None for each in calls)


def _commanded_once(case: Case) -> dict[str, int]:
    """Nothing where the machine lets nobody run commands."""
    if not case.evidence.settings.get("commands"):
        return {}
    runs = [run for run in case.runs.values() if run.submission and is_command(run.submission.body)]
    well = (run for run in runs if run.status == "completed" and is_at_most_once(case, run))
    return {"commands that were delivered at most once": sum(1 for _ in well)}


def _remote(case: Case, run: Run) -> int:
    return sum(start.worker.startswith(case.bounds.remote) for start in run.starts) if case.bounds.remote else 0


def _caught_up(case: Case, run: Run) -> bool:
    made, at = run.moment("createdAt"), run.scheduled
    return made is not None and at is not None and made - at > case.bounds.grace and run.status != "skipped"


def _jittered(run: Run) -> bool:
    due, at = run.due, run.scheduled
    return run.submission is None and due is not None and at is not None and due > at


def _used_up(case: Case, job: Job) -> bool:
    return any(len(epoch.made) >= epoch.most for epoch in Budget(job).epochs(case))


def _count(rows: list[dict[str, object]], status: str) -> int:
    return sum(row["status"] == status for row in rows)


def _taken_over(case: Case, run: Run) -> bool:
    """A second claim without an ending of the first on record: its worker was gone before it said that it had begun."""
    return any(run.attempt_of(start.fence) is None for start in run.starts[:-1]) and bool(case.faults.all)


def _late_results(run: Run) -> int:
    """Handlers that came to their end after a higher fence had begun: nothing of theirs may be taken (S6)."""
    return sum(any(start.fence > end.fence and start.at < end.at for start in run.starts) for end in run.ends)


def _repeated(call: Call) -> int:
    """Repetitions that were given the first answer."""
    answers = [each.answer for each in call.operations if each.outcome is Outcome.OK and each.answer]
    return sum(answer == answers[0] for answer in answers[1:])


def _ambiguous(case: Case) -> tuple[int, int]:
    """Calls without an answer that turned out to have happened, and not to have happened.

    Repeated under its key until it was answered: had the first try happened, the resource is older than the last one.
    """
    done = sum(job.timeline.last >= {None} for job in case.jobs.values())
    not_done = 0
    for call in case.calls:
        answered = call.answered
        unsure = [each for each in call.operations if each.outcome is Outcome.UNKNOWN]
        if answered is None or not unsure or answered.answer is None or answered.kind == "backfillJob":
            continue
        made = _made(case, answered.answer)
        if made is not None and unsure[-1].invoked < answered.invoked:
            done, not_done = done + (made < answered.invoked), not_done + (made >= answered.invoked)
    unsure_jobs = sum(call.first.kind == "createJob" and call.unsure for call in case.calls)
    return done, not_done + unsure_jobs - sum(None in job.timeline.last for job in case.jobs.values())


def _made(case: Case, answer: dict[str, object]) -> float | None:
    if "jobId" in answer:
        job = case.jobs.get(str(answer["jobId"]))
        return None if job is None or job.row is None else seconds(job.row["createdAt"])
    runs = answer.get("runIds") or [answer.get("runId")]
    run = case.runs.get(str(runs[0])) if isinstance(runs, list) else None
    return None if run is None else run.moment("createdAt")
