-- :name end_waiting_timers
-- Before `end_waiting_runs`, in a statement of its own: what promote took meanwhile is a run by then.
WITH untimed AS (
    DELETE FROM timer WHERE id = ANY ($1::bigint[]) RETURNING id, job, scheduled_at, due_at, tenant, spec, target
)
INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error, target)
SELECT id, job, scheduled_at, due_at, clock_timestamp(), tenant, spec, 0, 0, 6, $2, target FROM untimed
RETURNING run

-- :name pop_ready
-- The ready row first, then the run, as everybody does: whoever pops it has the run, and a claim in mid-flight is waited
-- for.
DELETE FROM ready USING run JOIN spec ON spec.id = run.spec
 WHERE run.id = ANY ($1::bigint[]) AND ready.lane = spec.lane AND ready.rank = run.rank AND ready.run = run.id
RETURNING ready.run

-- :name end_waiting_runs
-- Those that were popped ($3) and those that are not ready. A statement apart from the one that pops: this one may have to
-- look at a row again that somebody has just changed, and what it then asks for must not be a deed itself. Runs that change
-- their place at this moment, by a promotion or a hand-back, are found by the next look.
WITH waiting AS MATERIALIZED (
    SELECT id FROM run WHERE id = ANY ($1::bigint[]) AND (state IN (0, 2) OR id = ANY ($3::bigint[]))
     ORDER BY id FOR UPDATE
), gone AS (
    DELETE FROM run USING waiting WHERE run.id = waiting.id
    RETURNING run.id, run.job, run.scheduled_at, run.due_at, run.tenant, run.spec, run.attempt, run.target
)
INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error, target)
SELECT id, job, scheduled_at, due_at, clock_timestamp(), tenant, spec, attempt, 0, 6, $2, target FROM gone
RETURNING run

-- :name ask_to_stop
-- What workers hold. One that was handed back meanwhile is found by the next look.
SELECT id, worker, is_remote FROM ask_to_stop($1::bigint[])

-- :name held_runs_of_job
-- The job is locked, and what waited has been ended: whatever is left is in some worker's hands.
SELECT id FROM run WHERE job = $1 AND state = 1

-- :name recall_runs_of_job
-- What is taken and has not begun, as far as is known. Who holds the lock of a run settles it, or notes that it has begun.
WITH mine AS MATERIALIZED (
    SELECT id, fence FROM run WHERE job = $1 AND state = 1 AND started_at IS NULL AND recall IS NULL
     ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), held AS MATERIALIZED (
    SELECT mine.id, claim.worker
      FROM claim CROSS JOIN LATERAL unnest(claim.runs) AS held(run)
      JOIN mine ON mine.id = held.run AND mine.fence < claim.id
)
UPDATE run SET recall = held.worker FROM held WHERE run.id = held.id
RETURNING run.id, held.worker, (SELECT worker.key FROM worker WHERE worker.id = held.worker) IS NOT NULL AS is_remote

-- :name still_there
SELECT id FROM run WHERE id = ANY ($1::bigint[])
UNION ALL SELECT id FROM timer WHERE id = ANY ($1::bigint[])

-- :name still_theirs
-- Of a run its tenant never changes, so what is asked once holds.
SELECT id FROM run WHERE tenant = $1 AND id = ANY ($2::bigint[])
UNION ALL SELECT id FROM timer WHERE tenant = $1 AND id = ANY ($2::bigint[])

-- :name is_in_outbox
SELECT EXISTS (SELECT FROM outbox WHERE tenant = $1 AND id = $2 AND refused IS NULL)
