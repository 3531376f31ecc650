"""Mutants of what a cancel and a time-out promise, and of what graphs do."""

from typing import Final

from chaos.mutant import Edit, Mutant, burst

_GRAPHS: Final = "store/migrations/0026_fewer_calls.sql"
"""Where `follow` was last written."""
_SEATS: Final = "store/migrations/0032_seats_looked_up.sql"
"""Where `lock_ties` was."""
_READ_BEFORE: Final = "(SELECT w.waits FROM node w, pg_sleep(0.05) WHERE w.run = edge.child)"
"""For a moment before it is written: parents that end at once are rare where it takes none."""
_KILLS: Final = [burst((0.0, "kill", "worker-0"), (6.0, "reset", "worker-1"))]
_SECONDS: Final = 40.0

_CANCEL_FORGOTTEN = Mutant(
    "cancel-forgotten",
    "a run that was asked to stop is tried again when its attempt fails or its worker is lost",
    (
        Edit(
            "store/sql/dispatch.sql",
            "CASE WHEN cancel_asked IS NOT NULL AND asked <> 4 THEN 6\n",
            "CASE WHEN false THEN 6\n",
        ),
        Edit("store/sql/fleet.sql", "WHEN cancel_asked IS NOT NULL THEN 6\n", "WHEN false THEN 6\n"),
    ),
    _KILLS,
    _SECONDS,
)
_CANCEL_UNHEARD = Mutant(
    "cancel-unheard",
    "a worker does not stop what it was asked to stop",
    (
        Edit(
            "worker/runner.py",
            'self._underway.stop(going, now, Ending.CANCELLED, "cancelled on request")',
            "pass",
        ),
    ),
    _KILLS,
    _SECONDS,
)
_CANCEL_TAKES_FROM_WORKERS = Mutant(
    "cancel-takes-from-workers",
    "what a worker holds is ended at once, and told to be cancelled, while it goes on",
    (
        Edit(
            "store/sql/stopping.sql",
            "(state IN (0, 2) OR id = ANY ($3::bigint[]))",
            "(state IN (0, 1, 2) OR id = ANY ($3::bigint[]))",
        ),
    ),
    _KILLS,
    _SECONDS,
)
_JOIN_BY_BATCH = Mutant(
    "join-by-batch",
    "parents that end in one batch count as one: who waits for both waits for ever",
    (
        Edit(
            _GRAPHS,
            "count(*) FILTER (WHERE (edge.condition = 0 AND fate = 4) OR (edge.condition = 1 AND NOT told)) AS met,",
            "least(1, count(*) FILTER (WHERE (edge.condition = 0 AND fate = 4)"
            " OR (edge.condition = 1 AND NOT told))) AS met,",
        ),
    ),
    _KILLS,
    _SECONDS,
)
_FAILURE_IGNORED = Mutant(
    "failure-ignored",
    "a parent that has died counts like one that succeeded",
    (Edit(_GRAPHS, "(edge.condition = 0 AND fate = 4) OR", "(edge.condition = 0 AND fate IN (4, 5)) OR"),),
    _KILLS,
    _SECONDS,
)
_GRAPH_UNLOCKED = Mutant(
    "graph-unlocked",
    "nobody locks a graph before it tells what has ended, and a join is counted down from what was read before: parents"
    " that end at the same time count as one; workers take one run at a time",
    (
        # Else one worker has both parents, and tells of both at once.
        Edit("worker/claimer.py", "room = min(room, LARGEST_CLAIM)\n", "room = min(room, 1)\n"),
        Edit(
            _SEATS,
            "    PERFORM FROM graph_run WHERE id IN (SELECT graph FROM node WHERE run = ANY (ids))"
            " ORDER BY id FOR UPDATE;\n",
            "",
        ),
        Edit(
            _SEATS,
            "run = ANY (ids) AND n.graph IS NULL)\n      ORDER BY run FOR UPDATE;\n",
            "run = ANY (ids) AND n.graph IS NULL)\n      ORDER BY run;\n",
        ),
        # The row of who waits is a lock too, and what it says is read again once it is free.
        Edit(
            _GRAPHS, "            SELECT edge.child,\n", f"            SELECT edge.child, {_READ_BEFORE} AS waited,\n"
        ),
        Edit(
            _GRAPHS, "UPDATE node SET waits = node.waits - said.met,", "UPDATE node SET waits = said.waited - said.met,"
        ),
        Edit(_GRAPHS, "said.lost IS NULL AND node.waits = said.met", "said.lost IS NULL AND said.waited = said.met"),
    ),
    _KILLS,
    _SECONDS,
    rate=60.0,
)
_GATE_IGNORED = Mutant(
    "gate-ignored",
    "whoever calls up what has come due does not ask whether its job is paused",
    (
        Edit(
            "store/sql/promote.sql",
            "CASE WHEN due.gate = 1 OR due.rank IS NULL THEN 2 ELSE 1 END",
            "CASE WHEN due.rank IS NULL THEN 2 ELSE 1 END",
        ),
        Edit("store/sql/promote.sql", "WHERE rank IS NULL AND gate IS DISTINCT FROM 1)", "WHERE rank IS NULL)"),
        Edit(
            "store/sql/promote.sql",
            "CASE WHEN timer.held OR due.rank IS NULL THEN 2 ELSE 1 END",
            "CASE WHEN due.rank IS NULL THEN 2 ELSE 1 END",
        ),
        Edit("store/sql/promote.sql", "WHERE rank IS NULL AND NOT held)", "WHERE rank IS NULL)"),
    ),
    [burst((0.0, "kill", "worker-0"))],
    60.0,
)
_TIME_UP_TOO_SOON = Mutant(
    "time-up-too-soon",
    "a worker stops a handler when a hundredth of its time is over",
    (
        Edit(
            "worker/underway.py",
            "latest = now - timeout.total_seconds()\n",
            "latest = now - timeout.total_seconds() / 100\n",
        ),
    ),
    _KILLS,
    _SECONDS,
)
_HOARDS = Edit(
    "worker/claimer.py", "room = min(soon, most - self._concurrency) - queued\n", "room = 200 - max(queued, 0)\n"
)
_RECALL_IGNORED = Mutant(
    "recall-ignored",
    "a worker begins what it has in hand of a job that was paused meanwhile; it takes far more than it can begin",
    (
        Edit("worker/process.py", "claimer.recall(standing.stop | standing.recalled)", "claimer.recall(standing.stop)"),
        # Else next to nothing waits in its hands, and that not for as long as a pause may take to hold.
        _HOARDS,
    ),
    _KILLS,
    _SECONDS,
)
ONLY_SIMULATED: Final = (_RECALL_IGNORED,)
"""For a real campaign all that workers do would have to take longer than a lease: only then a pause must have held. In
the simulation a lease is short. Workers that hoard and heed a recall are not found fault with there."""
OF_STOPPING: Final = (
    _GRAPH_UNLOCKED,
    _GATE_IGNORED,
    _CANCEL_FORGOTTEN,
    _CANCEL_UNHEARD,
    _CANCEL_TAKES_FROM_WORKERS,
    _JOIN_BY_BATCH,
    _FAILURE_IGNORED,
    _TIME_UP_TOO_SOON,
)
