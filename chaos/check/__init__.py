"""The checks, and the one way through all of them."""

from collections.abc import Callable, Iterator

from chaos.check.audit import audit_wrong
from chaos.check.backfill import backfilled_wrongly
from chaos.check.blind import mislabelled
from chaos.check.booking import booked_wrongly
from chaos.check.budget import too_many_runs
from chaos.check.cancel import cancelled_wrongly
from chaos.check.case import Case
from chaos.check.catchup import caught_up_wrongly
from chaos.check.command import left_somebody
from chaos.check.concurrency import limits_broken, overlaps
from chaos.check.confided import entrusted, let_out
from chaos.check.endings import false_ends, shared_claims
from chaos.check.executions import (
    at_most_once_broken,
    early_start,
    phantom_execution,
    unexplained_duplicate,
    woken_early,
    zombie_write,
)
from chaos.check.facts import Run
from chaos.check.finding import Finding
from chaos.check.forbidden import heard_nevertheless
from chaos.check.gate import begun_behind_the_gate
from chaos.check.graph import graphs_broken
from chaos.check.guardian import outlived
from chaos.check.history import (
    disordered_times,
    false_answers,
    false_attempts,
    false_status,
    job_of_another,
    wrong_tenant,
)
from chaos.check.jitter import out_of_place
from chaos.check.keys import keys_wrong
from chaos.check.ledger import false_ledger
from chaos.check.letters import letters_broken
from chaos.check.newest import outlived_by_newer
from chaos.check.occurrences import Occurrences, all_occurrences, check_occurrences
from chaos.check.outbox import outbox
from chaos.check.poison import poisoned_wrongly
from chaos.check.rations import rations_exceeded
from chaos.check.retries import given_up_early
from chaos.check.reuse import others, reused_keys
from chaos.check.sealed import clear_text
from chaos.check.submissions import doubled_keys, left_behind, lost_runs, lost_submissions, unasked_runs
from chaos.check.titles import SAFETY
from chaos.check.unended import beyond_its_time, stopped_without_reason
from chaos.check.unfilled import left_unfilled
from chaos.check.versions import lost_updates

__all__ = ["SAFETY", "Case", "Finding", "not_in_play", "safety_findings"]

_OF_ALL: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    lost_submissions,
    lost_runs,
    left_behind,
    doubled_keys,
    unasked_runs,
    limits_broken,
    overlaps,
    job_of_another,
    shared_claims,
    false_answers,
    outbox,
    letters_broken,
    booked_wrongly,
    begun_behind_the_gate,
    cancelled_wrongly,
    graphs_broken,
    keys_wrong,
    lost_updates,
    audit_wrong,
    rations_exceeded,
    clear_text,
    left_somebody,
    outlived_by_newer,
    reused_keys,
    heard_nevertheless,
    let_out,
)
_OF_EACH: tuple[Callable[[Case, Run], Iterator[Finding]], ...] = (
    phantom_execution,
    zombie_write,
    unexplained_duplicate,
    poisoned_wrongly,
    at_most_once_broken,
    outlived,
    given_up_early,
    early_start,
    woken_early,
    wrong_tenant,
    false_status,
    false_attempts,
    false_ends,
    disordered_times,
    stopped_without_reason,
    beyond_its_time,
)
_OF_EACH_JOB: tuple[Callable[[Case, Occurrences], Iterator[Finding]], ...] = (
    out_of_place,
    caught_up_wrongly,
    too_many_runs,
    false_ledger,
    backfilled_wrongly,
    left_unfilled,
)
_NEEDS: dict[str, Callable[[Case], object]] = {
    "S13": lambda case: case.evidence.settings.get("webhooks"),
    "S17": lambda case: case.evidence.dump.occurrences,
    "S19": lambda case: case.evidence.dump.booked,
    "S25": lambda case: case.evidence.dump.audit,
    "S27": lambda case: case.evidence.dump.sealed,
    "S31": lambda case: case.evidence.settings.get("commands"),
    "S33": lambda case: any(others(case)),
    "S34": lambda case: case.evidence.settings.get("forbidden"),
    "S35": lambda case: any(entrusted(case)),
}
"""What some checks look at that not every history has."""


def not_in_play(case: Case) -> list[str]:
    """Checks that had nothing to look at: that they found nothing proves nothing."""
    return [name for name, needs in _NEEDS.items() if not needs(case)]


def safety_findings(case: Case) -> Iterator[Finding]:
    """Everything that must never be, and is."""
    for check in _OF_ALL:
        yield from check(case)
    for run in case.runs.values():
        for check_run in _OF_EACH:
            yield from check_run(case, run)
    found_of = all_occurrences(case)
    yield from check_occurrences(case, found_of)
    yield from mislabelled(case, found_of)
    for found in found_of.values():
        for check_job in _OF_EACH_JOB:
            yield from check_job(case, found)
