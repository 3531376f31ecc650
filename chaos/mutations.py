"""Builds of Foliot with one safeguard taken out each: all of them."""

from typing import Final

from chaos.mutant import (
    CUT_OFF,
    EVERYBODY,
    NOBODY_FIRES,
    NOT_UNIQUE,
    PRODUCT,
    SCHEDULERS,
    Edit,
    Mutant,
    Stale,
    build,
    burst,
)
from chaos.mutations_of_admission import OF_ADMISSION
from chaos.mutations_of_commands import OF_COMMANDS
from chaos.mutations_of_dispatch import OF_DISPATCH
from chaos.mutations_of_faces import OF_FACES
from chaos.mutations_of_stopping import OF_STOPPING
from chaos.mutations_of_time import OF_TIME

__all__ = ["MUTANTS", "PRODUCT", "Edit", "Mutant", "Stale", "build"]

_COMMITS = [
    burst(
        *((3.0 * number, "cutBeforeCommit", f"api-{number % 2}") for number in range(8)),
        (10.0, "postgresKill", "postgres"),
    ),
]
_BLIND_REAPER = [burst((0.0, "standStill", "scheduler-0"), (8.0, "kill", "worker-1"))]
_LOST_HINTS = [
    burst(
        *((6.0 * again + 0.5 * number, "reset", f"worker-{number}") for again in range(3) for number in range(3)),
        (8.0, "reset", "scheduler-0"),
        (9.0, "reset", "scheduler-1"),
        (10.0, "reset", "api-0"),
    ),
]
_CLOCKS = [
    burst(
        *((20.0 * again, "clockJump", f"scheduler-{number}") for again in range(2) for number in range(2)),
        (3.0, "clockJump", "worker-0"),
    ),
]

_FENCE_OFF = Mutant(
    "fence-off",
    "settle and conclude take any result of a run, whoever holds it; a worker that learns of its own death still hands"
    " in what it has",
    (
        Edit(
            "store/sql/dispatch.sql",
            "AS x(run, fence, position, started_at), held\n"
            "     WHERE held.id = x.fence AND held.runs[x.position] = x.run AND run.id = x.run"
            " AND run.fence < held.id\n",
            "AS x(run, fence, position, started_at)\n     WHERE run.id = x.run\n",
        ),
        Edit(
            "store/sql/dispatch.sql",
            "      JOIN held ON held.fence = x.fence AND held.runs[x.position] = x.run\n"
            "      JOIN run ON run.id = x.run AND run.fence < held.id AND (",
            "      JOIN run ON run.id = x.run AND (",
        ),
        Edit(
            "store/sql/dispatch.sql",
            "run.*, held.id AS claim, x.fence AS told",
            "run.*, x.fence AS claim, x.fence AS told",
        ),
        # Otherwise it is a race between its first heartbeat and its first settlement, and mostly won by the former.
        Edit(
            "worker/process.py",
            "        if standing is None:\n",
            "        if standing is None:\n            await self._settler.drained()\n",
        ),
    ),
    CUT_OFF,
    40.0,
)
_UNIQUE_OFF = Mutant(
    "unique-off",
    "an instant may have any number of runs (no unique index), and a firing's progress is not compared before it is"
    " set; only overlap stays guarded; all schedulers look after all schedules",
    (
        EVERYBODY,
        *NOT_UNIQUE,
        Edit("store/sql/fire.sql", " AND f.done_through = x.done AND f.closed_at IS NULL\n", "\n"),
    ),
    SCHEDULERS,
    30.0,
)
_ACK_BEFORE_COMMIT = Mutant(
    "ack-before-commit",
    "the API answers when the rows are written, and commits then",
    (
        Edit(
            "services/submit.py",
            "                await plan(connection, [run for run, _ in later], [id_ for _, id_ in later])\n",
            "                await plan(connection, [run for run, _ in later], [id_ for _, id_ in later])\n"
            "            for call, numbers, answer in zip(calls, minted, repeated, strict=True):\n"
            "                if not call.done.done():\n"
            "                    call.done.set_result(Accepted(ids=() if answer else numbers, repeated=answer))\n",
        ),
    ),
    _COMMITS,
    35.0,
)
_REAPER_WITHOUT_RECHECK = Mutant(
    "reaper-without-recheck",
    "workers are buried by what the pass before had read of them, and the reaper does not ask whether it stood still"
    " itself",
    (
        Edit(
            "store/sql/fleet.sql",
            "UPDATE worker SET state = 2\n"
            " WHERE state IN (0, 1) AND (seen_at < clock_timestamp() - $1::interval"
            " OR seen_at > clock_timestamp() + $1::interval)\n"
            "RETURNING id\n",
            "UPDATE worker SET state = 2 FROM unnest($2::bigint[], $3::timestamptz[]) AS x(id, seen_at)\n"
            " WHERE worker.id = x.id AND state IN (0, 1) AND x.seen_at < clock_timestamp() - $1::interval\n"
            "RETURNING worker.id\n\n"
            "-- :name look_at_workers\n"
            "SELECT id, seen_at FROM worker WHERE state IN (0, 1)\n",
        ),
        Edit(
            "store/fleet.py",
            '    return [row["id"] for row in await line.fetch("bury", lease)]\n',
            '    ids, times = [row["id"] for row in _READ], [row["seen_at"] for row in _READ]\n'
            '    dead = [row["id"] for row in await line.fetch("bury", lease, ids, times)]\n'
            '    _READ[:] = await line.fetch("look_at_workers")\n'
            "    return dead\n\n\n"
            "_READ = []\n",
        ),
        Edit(
            "services/reap.py",
            "if self._may_judge(up) and not just_started and (dead := await bury(self._line, self._lease)):",
            "if dead := await bury(self._line, self._lease):",
        ),
    ),
    _BLIND_REAPER,
    35.0,
)
_NOTIFY_ONLY = Mutant(
    "notify-only",
    "nobody polls: workers and schedulers wait for hints, and listen to them once, on their first connection",
    (
        Edit("worker/process.py", "any_of(stop, self._wake, within=rest.nap())", "any_of(stop, self._wake)"),
        Edit("worker/carrier.py", "if connection is not self._listening:", "if self._listening is None:"),
        Edit("store/hints.py", "if connection is not self._connection:", "if self._connection is None:"),
        Edit("services/fire/__init__.py", "longest: float = 1.0", "longest: float = 3600.0"),
        Edit("services/promote.py", "longest: float = 0.5", "longest: float = 3600.0"),
    ),
    _LOST_HINTS,
    30.0,
    rate=20.0,  # under load there is always an end of something that makes a worker look for more
    slowest=0.5,
    chores=False,
)
_NODE_CLOCK = Mutant(
    "node-clock",
    "what is due is decided by the scheduler's own wall clock",
    (
        Edit(
            "services/fire/__init__.py",
            "        for wait in (True, False):\n",
            "        from datetime import UTC\n\n"
            "        now = now or datetime.now(UTC)\n"
            "        for wait in (True, False):\n",
        ),
        Edit(
            "services/promote.py",
            '        return await self._promote("runs", now, look) + await self._promote("timers", now, look)\n',
            "        from datetime import UTC\n\n"
            "        now = now or datetime.now(UTC)\n"
            '        return await self._promote("runs", now, look) + await self._promote("timers", now, look)\n',
        ),
    ),
    _CLOCKS,
    45.0,
)
_RUNS_UNCOUNTED = Mutant(
    "runs-uncounted",
    "maxRuns is not counted down",
    (
        Edit(
            "store/sql/fire.sql",
            "SET runs_left = greatest(job.runs_left - used.runs, 0)",
            "SET runs_left = job.runs_left",
        ),
    ),
    SCHEDULERS,
    40.0,
)
_JITTER_UNBOUNDED = Mutant(
    "jitter-unbounded",
    "a job's place in its jitter window may lie behind the next instant",
    (
        Edit(
            "store/sql/fire.sql",
            "THEN place_in(t.at, s.phase, t.following) ELSE",
            "THEN place_in(t.at, s.phase, NULL) ELSE",
        ),
    ),
    SCHEDULERS,
    40.0,
)
_MODE_IGNORED = Mutant(
    "mode-ignored",
    "every job catches up with its latest late instant, whatever it asked for",
    (
        Edit(
            "store/migrations/0002_time.sql",
            "AND (mode = 2 OR (mode = 1 AND (following IS NULL OR following > least(late_through, until)))));",
            "AND (following IS NULL OR following > least(late_through, until)));",
        ),
    ),
    NOBODY_FIRES,
    75.0,
)
_LEDGER_LIES = Mutant(
    "ledger-lies",
    "the occurrence ledger tells what was missed as fired",
    (
        Edit(
            "domain/occurrence.py",
            "return Occurrence(at=at, fate=Fate.MISSED, reason=_why(at, stretch.catch_up, firing))",
            "return Occurrence(at=at, fate=Fate.FIRED)",
        ),
    ),
    NOBODY_FIRES,
    75.0,
)
_LATE_FORGOTTEN = Mutant(
    "late-forgotten",
    "the record of a late instant is removed like that of one which was on time: nothing tells of those passed over",
    (
        Edit(
            "store/sql/fire.sql",
            "done = 0 AND late_through IS NULL AS is_plain",
            "done = 0 AS is_plain",
        ),
    ),
    NOBODY_FIRES,
    75.0,
)
_FIRING_UNCOMPARED = Mutant(
    "firing-uncompared",
    "a chunk is fired without asking whether somebody else did so since it was read; all schedulers look after all"
    " schedules",
    (EVERYBODY, Edit("store/sql/fire.sql", " AND f.done_through = x.done AND f.closed_at IS NULL\n", "\n")),
    SCHEDULERS,
    40.0,
)
MUTANTS: Final = (
    _FENCE_OFF,
    _UNIQUE_OFF,
    _ACK_BEFORE_COMMIT,
    _REAPER_WITHOUT_RECHECK,
    _NOTIFY_ONLY,
    _NODE_CLOCK,
    _RUNS_UNCOUNTED,
    _JITTER_UNBOUNDED,
    _MODE_IGNORED,
    _LEDGER_LIES,
    _LATE_FORGOTTEN,
    _FIRING_UNCOMPARED,
    *OF_TIME,
    *OF_DISPATCH,
    *OF_ADMISSION,
    *OF_STOPPING,
    *OF_COMMANDS,
    *OF_FACES,
)
