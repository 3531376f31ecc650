"""Mutants of what leases, dead letters, pauses and transactions promise."""

from typing import Final

from chaos.chores import Odd
from chaos.mutant import CUT_OFF, Edit, Mutant, burst

_WAITING: Final = "store/migrations/0028_short_sleeps.sql"
_GUARDIAN_OFF = Mutant(
    "guardian-off",
    "the guard of a process of its own does not look at the lease",
    (Edit("worker/child/guard.py", "if now >= self._leases[self._lease]:", "if now < 0:"),),
    [burst((0.0, "stopSupervisor", "workers"), (15.0, "stopSupervisor", "workers"))],
    75.0,
    odd=Odd(caged_every=3),  # so that somebody surely begins something in a process of its own meanwhile
)
_ONCE_IGNORED = Mutant(
    "once-ignored",
    "the reaper gives an at-most-once run that had begun to another worker",
    (Edit("store/sql/fleet.sql", "WHEN began = 1 AND once THEN 7", "WHEN false THEN 7"),),
    [burst((0.0, "kill", "worker-0"), (4.0, "kill", "worker-1"))],
    40.0,
)
_REPLAY_RESETS_FENCE = Mutant(
    "replay-resets-fence",
    "a replayed run begins with no fence: the claim in which it died covers it once more",
    (Edit("store/sql/letters.sql", "clock_timestamp(), fence, rank, tenant", "clock_timestamp(), 0, rank, tenant"),),
    [burst(*((6.0 * number, "kill", f"worker-{number}") for number in range(3)), warm_up=12.0)],
    45.0,
)
_DISCARD_FORGETS = Mutant(
    "discard-forgets",
    "a discarded run stays among the dead letters, where the next replay finds it",
    (
        Edit(
            "store/sql/letters.sql",
            "    DELETE FROM dead_letter d USING held WHERE d.id = held.id RETURNING d.*\n",
            "    SELECT d.* FROM dead_letter d JOIN held ON held.id = d.id\n",
        ),
    ),
    [burst((0.0, "kill", "worker-0"))],
    30.0,
)
_COMMIT_WITHOUT_SETTLE = Mutant(
    "commit-without-settle",
    "the transaction of a handler is committed whether or not the run is still its own; it is settled afterwards",
    (
        Edit(
            "store/effects.py", "                await self._settle(connection, settlement)\n", "                pass\n"
        ),
    ),
    [burst((0.0, "stop", "worker-0"), (3.0, "stop", "worker-1"))],
    40.0,
)
_JOINED_UNFENCED = Mutant(
    "joined-unfenced",
    "the gateway takes any result of a run, whoever holds it; a remote worker that learns of its own death still hands"
    " in what it has",
    (
        Edit(
            "store/sql/gateway.sql",
            "    SELECT claim.id, claim.worker, claim.runs, x.first, x.last\n"
            "      FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[]) AS x(fence, worker, first, last)\n"
            "      JOIN claim ON claim.id = x.fence AND claim.worker = x.worker\n"
            "       FOR KEY SHARE OF claim\n",
            "    SELECT x.fence AS id, x.worker, x.first, x.last\n"
            "      FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[]) AS x(fence, worker, first, last)\n",
        ),
        Edit(
            "store/sql/gateway.sql",
            "     WHERE run.id = ($5::bigint[])[n] AND held.runs[($6::int[])[n]] = run.id AND run.fence < held.id\n",
            "     WHERE run.id = ($5::bigint[])[n] AND $6::int[] IS NOT NULL\n",
        ),
        Edit(
            "worker/process.py",
            "        if standing is None:\n",
            "        if standing is None:\n            await self._settler.drained()\n",
        ),
    ),
    [burst((0.0, "stop", "worker-3"), (9.0, "partition", "worker-3"))],
    60.0,
)
_PAUSE_IGNORED = Mutant(
    "pause-ignored",
    "claims take from paused queues, and workers do not keep what they have of them",
    (
        *(
            Edit(file, "     WHERE wanted.lane <> ALL (ARRAY(SELECT lane FROM paused_lane))\n", "")
            for file in ("store/sql/dispatch.sql", "store/sql/gateway.sql")
        ),
        # Where `claim_when_ready` was last written: in its look and in its deed.
        Edit(
            _WAITING,
            "\n                       WHERE wanted.lane <> ALL (ARRAY(SELECT lane FROM paused_lane))\n"
            "                         AND EXISTS",
            "\n                       WHERE EXISTS",
        ),
        Edit(_WAITING, "\n     WHERE wanted.lane <> ALL (ARRAY(SELECT lane FROM paused_lane))\n", "\n"),
        Edit("worker/claimer.py", "        self._paused = lanes\n", "        self._paused = frozenset()\n"),
        Edit("worker/claimer.py", "        if lanes - self._paused:\n", "        if lanes - lanes:\n"),
    ),
    [burst((0.0, "kill", "worker-0"))],
    40.0,
)
_CUT_OFF_IGNORED = Mutant(
    "cut-off-ignored",
    "a worker that is cut off from the database lets handlers go on that must not outlive its lease",
    (Edit("worker/runner.py", "if going.assignment.spec.stops_when_cut_off:", "if now < 0:"),),
    CUT_OFF,
    45.0,
    odd=Odd(patient_every=2, patient=(30.0, 32.0)),
)
_SNOOZE_SPENDS = Mutant(
    "snooze-spends",
    "a snooze counts as an attempt",
    (
        Edit(
            "store/sql/dispatch.sql",
            "attempt = run.attempt + CASE WHEN covered.ending IN (7, 8) THEN 0 ELSE 1 END",
            "attempt = run.attempt + CASE WHEN covered.ending = 8 THEN 0 ELSE 1 END",
        ),
    ),
    [burst((0.0, "kill", "worker-0"))],
    25.0,
)
_RETRIES_IGNORED = Mutant(
    "retries-ignored",
    "whatever fails once is a dead letter, however many retries it has",
    (Edit("domain/verdict.py", "max_retries=spec.max_retries,", "max_retries=0,"),),
    [burst((0.0, "kill", "worker-0"))],
    25.0,
)
_HAND_BACK_KEEPS_FENCE = Mutant(
    "hand-back-keeps-fence",
    "a run that is handed back, snoozed or tried again keeps the fence that it had: the claim that it came from covers"
    " it still, and whoever takes that claim from a dead worker takes the run from whoever has it by then",
    (
        Edit(
            "store/sql/dispatch.sql",
            "    UPDATE run SET fence = covered.claim, state = covered.next_state, started_at = NULL, recall = NULL,\n",
            "    UPDATE run SET state = covered.next_state, started_at = NULL, recall = NULL,\n",
        ),
    ),
    [burst(*((6.0 * number, "kill", f"worker-{number}") for number in range(3)), warm_up=12.0)],
    45.0,
)
_REPLY_FORGOTTEN = Mutant(
    "reply-forgotten",
    "a worker that lives never learns of a claim whose reply was lost: what it took waits for the worker's end",
    (
        Edit(
            "store/sql/dispatch.sql",
            " WHERE claim.worker = $1 AND claim.number = $2\n",
            " WHERE claim.worker = $1 AND claim.number = $2 AND false\n",
        ),
        Edit(
            "store/sql/dispatch.sql",
            " WHERE claim.worker = $1 AND claim.id <> ALL ($2::bigint[])\n",
            " WHERE claim.worker = $1 AND claim.id <> ALL ($2::bigint[]) AND false\n",
        ),
    ),
    [burst(*((3.0 * number, "partition", f"worker-{number % 3}") for number in range(6)))],
    40.0,
)
_LEAF_BY_CLOCK = Mutant(
    "leaf-by-clock",
    "which leaf an idempotency key is kept in is said by a clock, which changes its mind ten times a second",
    (
        Edit(
            "store/migrations/0009_submission.sql",
            "    open_leaf := (SELECT leaf FROM key_leaf WHERE closed_at IS NULL);\n",
            "    open_leaf := (SELECT leaf FROM key_leaf WHERE closed_at IS NULL)\n"
            "                 + (extract(epoch FROM clock_timestamp()) * 10)::bigint % 2;\n",
        ),
    ),
    [burst((0.0, "kill", "api-0"), (4.0, "kill", "api-1"), (8.0, "partition", "api-0"))],
    40.0,
)
_SUSPECTS_AMONG_OTHERS = Mutant(
    "suspects-among-others",
    "a run under which workers died again and again is still run among others, and takes the next worker along",
    (Edit("domain/suspicion.py", "SUSPICIOUS: Final = 2\n", "SUSPICIOUS: Final = 20\n"),),
    [burst((0.0, "poison", "workers"))],
    75.0,
)
_DEATH_UNDONE = Mutant(
    "death-undone",
    "a heartbeat brings a worker back to life that was declared dead, and it goes on with what was taken from it: also"
    " with what may begin once only, of which the database says that it is not its own any more",
    (
        Edit(
            "store/sql/fleet.sql",
            "ELSE rate END\n WHERE id = $1 AND state IN (0, 1)\n",
            "ELSE rate END, state = state % 2\n WHERE id = $1\n",
        ),
        Edit(
            "store/sql/gateway.sql",
            "      JOIN worker ON worker.id = x.id AND worker.state IN (0, 1)\n",
            "      JOIN worker ON worker.id = x.id\n",
        ),
        Edit(
            "store/sql/gateway.sql",
            "UPDATE worker SET seen_at = clock_timestamp(),\n",
            "UPDATE worker SET seen_at = clock_timestamp(), state = state % 2,\n",
        ),
        Edit(
            "worker/runner.py",
            "            elif is_ours and (now := self._clock()) < self._held_until:\n",
            "            elif (now := self._clock()) < self._held_until:\n",
        ),
    ),
    [burst(*((9.0 * number, "stop", f"worker-{number}") for number in range(3)), warm_up=12.0)],
    60.0,
)
_NOT_TOO_LATE: Final = "NOT EXISTS (SELECT FROM worker w WHERE w.id = claim.worker AND w.seen_at < claim.claimed_at)"
_LATE_CLAIM_KEPT = Mutant(
    "late-claim-kept",
    "what is claimed in the name of a worker that was declared dead before is nobody's for ever",
    (
        Edit(
            "store/sql/fleet.sql",
            "UPDATE worker SET state = 2 WHERE id = $1\n",
            "UPDATE worker SET state = 2, seen_at = clock_timestamp() WHERE id = $1\n",
        ),
        Edit(
            "store/sql/fleet.sql",
            "UPDATE worker SET state = 2\n WHERE",
            "UPDATE worker SET state = 2, seen_at = clock_timestamp()\n WHERE",
        ),
        Edit(
            "store/sql/fleet.sql",
            "          WHERE id = ANY ($1::bigint[])\n",
            f"          WHERE id = ANY ($1::bigint[]) AND {_NOT_TOO_LATE}\n",
        ),
        Edit(
            "store/sql/fleet.sql",
            "          WHERE id > $2::bigint\n",
            f"          WHERE id > $2::bigint AND {_NOT_TOO_LATE}\n",
        ),
    ),
    [burst(*((6.0 * number, "stall", f"worker-{number}") for number in range(3)), warm_up=12.0)],
    60.0,
)
_CRASHES_UNCOUNTED = Mutant(
    "crashes-uncounted",
    "a run that kills one process of its own after the other is never given up",
    (
        Edit(
            "store/sql/dispatch.sql",
            "WHEN ending = 5 AND coalesce(crashes, 0) + 1 >= 3 THEN 5",
            "WHEN ending = 5 AND coalesce(crashes, 0) + 1 >= 300 THEN 5",
        ),
    ),
    [burst((0.0, "poison", "workers"))],
    75.0,
)
_SUCCESS_HANDED_BACK = Mutant(
    "success-handed-back",
    "of some runs a worker says that it has not begun them, when their handler has come to a good end",
    (
        Edit(
            "worker/runner.py",
            "            return SUCCEEDED\n",
            "            return SUCCEEDED if assignment.run.id % 7 or assignment.run.attempt else Outcome.released()\n",
        ),
    ),
    [burst((0.0, "kill", "worker-0"))],
    30.0,
)
_OUTAGE_MASSACRE = Mutant(
    "outage-massacre",
    "for workers to be declared dead it is enough that they have been silent, and be it because there was no database",
    (Edit("services/reap.py", "if self._may_judge(up) and not just_started and (dead :=", "if (dead :="),),
    [burst((0.0, "outage", "postgres"))],
    60.0,
)
OF_DISPATCH: Final = (
    _GUARDIAN_OFF,
    _ONCE_IGNORED,
    _REPLAY_RESETS_FENCE,
    _DISCARD_FORGETS,
    _COMMIT_WITHOUT_SETTLE,
    _JOINED_UNFENCED,
    _PAUSE_IGNORED,
    _CUT_OFF_IGNORED,
    _SNOOZE_SPENDS,
    _RETRIES_IGNORED,
    _HAND_BACK_KEEPS_FENCE,
    _REPLY_FORGOTTEN,
    _LEAF_BY_CLOCK,
    _SUSPECTS_AMONG_OTHERS,
    _DEATH_UNDONE,
    _LATE_CLAIM_KEPT,
    _CRASHES_UNCOUNTED,
    _SUCCESS_HANDED_BACK,
    _OUTAGE_MASSACRE,
)
