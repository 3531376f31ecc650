"""Which rare paths the long variant of the simulation must have walked: it is too long to find that out at its end."""

from chaos.check.case import Case
from chaos.check.rare import rare_paths
from chaos.records import Dump, Evidence
from chaos.simulation.campaign import ELSEWHERE

WALKED = {
    "HTTP targets that waited for one of their job",
    "HTTP targets that waited for one of their key",
    "HTTP targets that waited for one of their tenant",
    "HTTP targets that waited for their graph",
    "alarms",
    "ambiguous calls done",
    "ambiguous calls not done",
    "back-filled runs",
    "blocked behind a failure",
    "cancelled between attempts",
    "cancelled pending runs",
    "cancelled while running",
    "cancelled while waiting",
    "completed before the cancel",
    "completed in spite of a cancel",
    "dead letters",
    "discarded letters by filter",
    "discarded letters by hand",
    "graphs that went on after a replay",
    "idempotent repeats",
    "jittered runs",
    "joins",
    "kept its place for a retry",
    "keys refused for another request",
    "late instants caught up",
    "late writes",
    "lease take-overs",
    "ledger rows compared",
    "left out of their graph",
    "limits changed",
    "made way for a newer run",
    "maxRuns reached",
    "misfires",
    "replayed letters by filter",
    "replayed letters by hand",
    "replayed letters that ended well",
    "retries",
    "runs held back by a paused queue",
    "skipped overlaps",
    "skipped while one waited",
    "snoozes",
    "stopped before the end of a lease",
    "time-outs",
    "unknown ends",
    "waited for one of its job",
    "waited for one of its key",
    "waited for one of its tenant",
    "zombie rejections",
}
"""What the seeds were seen to walk, each of them within the first fifty."""


def test_a_new_rare_path_is_walked_in_the_simulation_or_said_to_be_walked_elsewhere():
    dump = Dump(taken=0.0, jobs={}, runs={}, attempts={})
    paths = rare_paths(Case(Evidence(seed=1, operations=[], effects=[], faults=[], dump=dump))).keys()
    assert paths - ELSEWHERE == WALKED
    assert paths >= ELSEWHERE
