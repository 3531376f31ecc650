"""Histories made up from a seed, to prove the checker: clean ones must pass, planted faults must be found."""

from chaos.records import Evidence
from chaos.synthetic import (
    planted_cancels,
    planted_commands,
    planted_ends,
    planted_executions,
    planted_faces,
    planted_graphs,
    planted_history,
    planted_lines,
    planted_misses,
    planted_oddities,
    planted_outsiders,
    planted_promises,
    planted_stops,
    planted_time,
    poison,
)
from chaos.synthetic.clean import FEW, clean
from chaos.synthetic.surgery import PLANTS, Surgery
from chaos.synthetic.trails import trails_of

__all__ = [
    "FEW",
    "PLANTS",
    "clean",
    "planted",
    "planted_cancels",
    "planted_commands",
    "planted_ends",
    "planted_executions",
    "planted_faces",
    "planted_graphs",
    "planted_history",
    "planted_lines",
    "planted_misses",
    "planted_oddities",
    "planted_outsiders",
    "planted_promises",
    "planted_stops",
    "planted_time",
    "poison",
]

LEDGER = "S17"
AUDIT = "S25"


def planted(seed: int, name: str) -> Evidence:
    """A clean history of this seed with one fault in it: a small one, if there is what the fault needs.

    The occurrence ledger is there only if the fault is one of its own: what is wrong with a run is wrong in it too.
    The audit trail tells what happened, fault or not, unless the fault is in it.
    """
    try:
        evidence = clean(seed, FEW)
        PLANTS[name].apply(Surgery(evidence))
    except (LookupError, StopIteration):
        evidence = clean(seed)
        PLANTS[name].apply(Surgery(evidence))
    if PLANTS[name].check != LEDGER:
        evidence.dump.occurrences = {}
    if PLANTS[name].check != AUDIT:
        evidence.dump.audit = trails_of(evidence.operations)
    return evidence
