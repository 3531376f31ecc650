"""Whether what is on record so far is enough to say that something was violated, whatever is still to come.

Most checks compare with what the product says at the end, or ask which fault explains what they see, and a fault is on
record when it is over. These do neither: they look at answers and at the ledger alone, and nothing that is added to
those can take back what they find.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from chaos.check import Case, Finding
from chaos.check.executions import early_start, phantom_execution, unexplained_duplicate
from chaos.check.forbidden import heard_nevertheless
from chaos.check.history import wrong_tenant
from chaos.check.keys import keys_wrong
from chaos.check.reuse import reused_keys
from chaos.check.submissions import doubled_keys
from chaos.check.versions import lost_updates
from chaos.records import Dump, Effect, Evidence, Operation, read_lines

LASTING: Final = frozenset(
    {
        ("S4", "key"),
        ("S5", "payload"),
        ("S7", "twice"),
        ("S10", "early"),
        ("S11", "run"),
        ("S23", "foreign"),
        ("S23", "revoked"),
        ("S23", "beyond"),
        ("S24", "went back"),
        ("S24", "lost update"),
        ("S33", "taken"),
        ("S33", "misled"),
        ("S34", "heard"),
    }
)
"""Rules of those checks that no further record can refute; their others are left to the end."""
_OF_ALL: Final = (doubled_keys, heard_nevertheless, keys_wrong, lost_updates, reused_keys)
_OF_EACH: Final = (early_start, phantom_execution, unexplained_duplicate, wrong_tenant)


class Caught(Exception):  # noqa: N818 - reads aloud
    """Something was violated: the rest of the run could only say so again."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__(findings[0].message)
        self.findings = findings


def glance(folder: Path) -> list[Finding]:
    """What is violated for good by the records of a run that still goes on."""
    head = msgspec.json.decode((folder / "run.json").read_bytes())
    return lasting(
        Evidence(
            seed=head["seed"],
            settings=head["settings"],
            effects=read_lines(folder / "ledger.jsonl", Effect),
            operations=read_lines(folder / "operations.jsonl", Operation),
            faults=[],
            dump=Dump(taken=time.time(), jobs={}, runs={}, attempts={}, quiet=False),
        )
    )


def lasting(evidence: Evidence) -> list[Finding]:
    case = Case(evidence)
    return [each for each in _findings(case) if (each.check, each.rule) in LASTING]


def _findings(case: Case) -> Iterator[Finding]:
    for check in _OF_ALL:
        yield from check(case)
    for run in case.runs.values():
        # What a job's runs must be given is another thing while a change of the job is under way.
        of_it: tuple[Callable[..., Iterator[Finding]], ...] = _OF_EACH
        if run.submission is None or run.submission.digest is None:
            of_it = tuple(each for each in of_it if each is not phantom_execution)
        for check_run in of_it:
            yield from check_run(case, run)
