-- :name report
-- Progress belongs to an attempt, a checkpoint to the run. The claim and then the run are locked, as in `settle`, in the
-- weakest way: whoever takes the run away waits for this, or is waited for and then seen. A checkpoint of an earlier
-- attempt, which a later one has written over, does not come back.
WITH told AS (
    SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::boolean[], $5::float8[], $6::float8[], $7::float8[], $8::text[],
                         $9::timestamptz[], $10::bytea[])
                  AS x(run, fence, tells, fraction, done, total, message, at, state)
), held AS MATERIALIZED (
    SELECT id, runs FROM claim WHERE id = ANY ($3::bigint[]) AND worker = $1 FOR KEY SHARE
), ours AS MATERIALIZED (
    SELECT told.*, run.tenant FROM told
      JOIN held ON held.id = told.fence AND told.run = ANY (held.runs)
      JOIN run ON run.id = told.run AND run.fence < held.id
     ORDER BY run.id
       FOR KEY SHARE OF run
), noted AS (
    INSERT INTO progress AS p (run, fence, fraction, done, total, message, at, tenant)
    SELECT run, fence, fraction, done, total, message, at, tenant FROM ours WHERE tells
    ON CONFLICT (run, fence) DO UPDATE SET fraction = excluded.fraction, done = excluded.done, total = excluded.total,
                                           message = excluded.message, at = excluded.at, tenant = excluded.tenant
), saved AS (
    INSERT INTO checkpoint AS c (run, fence, state, saved_at)
    SELECT run, fence, state, clock_timestamp() FROM ours WHERE state IS NOT NULL
    ON CONFLICT (run) DO UPDATE SET fence = excluded.fence, state = excluded.state, saved_at = excluded.saved_at
     WHERE c.fence <= excluded.fence
)
SELECT run, fence FROM ours

-- :name last_checkpoint
SELECT checkpoint.state
  FROM claim JOIN run ON run.id = $2 AND run.id = ANY (claim.runs) AND run.fence < claim.id
  JOIN checkpoint ON checkpoint.run = run.id
 WHERE claim.id = $3 AND claim.worker = $1

-- :name tenants_of_runs
SELECT id, tenant FROM run WHERE id = ANY ($1::bigint[])
UNION ALL SELECT id, tenant FROM dead_letter WHERE id = ANY ($1::bigint[])
UNION ALL SELECT id, tenant FROM timer WHERE id = ANY ($1::bigint[])

-- :name progress_of_runs
-- The last attempt that said something.
SELECT DISTINCT ON (run) run, fence, fraction, done, total, message, at FROM progress
 WHERE tenant = $2 AND run = ANY ($1::bigint[]) ORDER BY run, fence DESC

-- :name progress_of_attempts
SELECT progress.run, progress.fence, fraction, done, total, message, at
  FROM unnest($1::bigint[], $2::bigint[]) AS x(run, fence)
  JOIN progress ON progress.run = x.run AND progress.fence = x.fence AND progress.tenant = $3

-- :name remove_old_reports
-- Checkpoints of runs that are over help nobody; a day later nobody can be in the middle of writing one.
WITH told AS (
    DELETE FROM progress WHERE at < statement_timestamp() - interval '30 days'
)
DELETE FROM checkpoint c
 WHERE c.saved_at < statement_timestamp() - interval '1 day'
   AND NOT EXISTS (SELECT FROM run WHERE run.id = c.run) AND NOT EXISTS (SELECT FROM dead_letter d WHERE d.id = c.run)
