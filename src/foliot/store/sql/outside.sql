-- :name derived_key
SELECT derived_key($1, $2)

-- :name signing_key
SELECT signing_key($1)

-- :name find_attempt
-- The attempt of run $1 with the fence $2, if it has not ended: outside, or still in its worker's hands ($3), whose word
-- that it goes on outside may be on its way.
SELECT run.id, run.tenant, run.spec, run.job, run.attempt, run.deaths, run.forgiven, run.tied,
       run.scheduled_at, spec.body AS spec_body, outside.run IS NOT NULL AS is_outside,
       coalesce(outside.started_at, run.started_at, held.claimed_at) AS started_at, coalesce(held.position, 1) AS position,
       run.cancel_asked IS NOT NULL AS is_unwanted
  FROM run JOIN spec ON spec.id = run.spec
  LEFT JOIN outside ON outside.run = run.id AND outside.fence = $2 AND outside.worker = $3
  LEFT JOIN LATERAL (SELECT claim.claimed_at, array_position(claim.runs, run.id) AS position FROM claim
                      WHERE claim.id = $2 AND claim.worker = $3 AND run.fence < claim.id) AS held ON true
 WHERE run.id = $1 AND (outside.run IS NOT NULL OR held.position IS NOT NULL)

-- :name find_end
-- How an attempt ended, whoever said so, and where that left its run.
SELECT ending, state, finished_at FROM history
 WHERE tenant = $1 AND run = $2 AND fence = $3 ORDER BY finished_at DESC LIMIT 1

-- :name keep_late_word
-- As `keep_late_results`, of an attempt that was outside when it ended.
INSERT INTO late_result (run, fence, tenant, job, attempt, worker, scheduled_at, started_at, ending, error)
SELECT run, fence, tenant, job, attempt, worker, scheduled_at, started_at, $4, $5 FROM history
 WHERE tenant = $1 AND run = $2 AND fence = $3 ORDER BY finished_at DESC LIMIT 1
ON CONFLICT (run, fence) DO NOTHING

-- :name overdue_outside
SELECT run.id, run.tenant, run.spec, run.job, run.attempt, run.deaths, run.forgiven, run.tied,
       run.scheduled_at, spec.body AS spec_body, true AS is_outside, outside.started_at, 1 AS position, outside.fence,
       outside.worker, run.cancel_asked IS NOT NULL AS is_unwanted
  FROM outside JOIN run ON run.id = outside.run JOIN spec ON spec.id = run.spec
 WHERE outside.until <= clock_timestamp()
 ORDER BY outside.until LIMIT $1

-- :name end_outside_runs
-- Those of these runs that go on outside end as cancelled, and why: nobody can be asked to stop there. The handler that
-- calls later is told.
WITH recalled AS MATERIALIZED (
    SELECT run, fence, worker, started_at FROM outside WHERE run = ANY ($1::bigint[]) ORDER BY run FOR UPDATE
), over AS (
    DELETE FROM outside USING recalled WHERE outside.run = recalled.run
), gone AS (
    DELETE FROM run USING recalled WHERE run.id = recalled.run
    RETURNING run.id, run.job, run.scheduled_at, run.due_at, recalled.started_at, recalled.worker, recalled.fence,
              run.tenant, run.spec, run.attempt, run.target
)
INSERT INTO history (run, job, scheduled_at, due_at, started_at, finished_at, worker, fence, tenant, spec, attempt, ending,
                     state, error, target)
SELECT id, job, scheduled_at, due_at, started_at, clock_timestamp(), worker, fence, tenant, spec, attempt + 1, 4, 6, $2,
       target
  FROM gone
RETURNING run
