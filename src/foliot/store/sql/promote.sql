-- :name due_runs
-- Runs in the hot table whose time has come. `v` ranks retries, which do not move their flow.
SELECT run.id, spec.lane, run.tenant, spec.priority, tenant.weight, run.attempt > 0 AS again, lane.v
  FROM (SELECT id, tenant, spec, attempt FROM run
         WHERE state = 0 AND due_at <= coalesce($1::timestamptz, clock_timestamp()) ORDER BY due_at LIMIT $2) AS run
  JOIN spec ON spec.id = run.spec
  JOIN lane ON lane.id = spec.lane
  JOIN tenant ON tenant.id = run.tenant

-- :name due_timers
SELECT timer.id, spec.lane, timer.tenant, spec.priority, tenant.weight, false AS again, 0::bigint AS v
  FROM (SELECT id, tenant, spec FROM timer
         WHERE due_at <= coalesce($1::timestamptz, clock_timestamp()) ORDER BY due_at LIMIT $2) AS timer
  JOIN spec ON spec.id = timer.spec
  JOIN tenant ON tenant.id = timer.tenant

-- :name promote_runs
-- The state is looked at again under the row's lock: a second promoter, a cancel or a pause that came first wins.
WITH moved AS (
    UPDATE run SET state = CASE WHEN job.gate = 1 THEN 2 ELSE 1 END, rank = x.rank
      FROM unnest($1::bigint[], $2::int[], $3::bigint[]) AS x(id, lane, rank)
      LEFT JOIN run AS self ON self.id = x.id LEFT JOIN job ON job.id = self.job
     WHERE run.id = x.id AND run.state = 0
    RETURNING run.id, run.state, x.lane, x.rank
), queued AS (
    INSERT INTO ready (lane, rank, run) SELECT lane, rank, id FROM moved WHERE state = 1
)
SELECT count(*) FROM moved

-- :name promote_timers
WITH gone AS (
    DELETE FROM timer USING unnest($1::bigint[], $2::int[], $3::bigint[]) AS x(id, lane, rank)
     WHERE timer.id = x.id
    RETURNING timer.*, x.lane, x.rank
), made AS (
    INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, rank, tenant, spec, state, target, payload)
    SELECT gone.id, gone.job, gone.origin, CASE WHEN gone.job IS NOT NULL THEN gone.due_at END, gone.scheduled_at,
           gone.due_at, gone.rank, gone.tenant, gone.spec, CASE WHEN job.gate = 1 THEN 2 ELSE 1 END, gone.target,
           gone.payload
      FROM gone LEFT JOIN job ON job.id = gone.job
    RETURNING id, state
), queued AS (
    INSERT INTO ready (lane, rank, run)
    SELECT gone.lane, gone.rank, gone.id FROM gone JOIN made ON made.id = gone.id WHERE made.state = 1
)
SELECT count(*) FROM made

-- :name next_due
SELECT extract(epoch FROM least((SELECT min(due_at) FROM run WHERE state = 0), (SELECT min(due_at) FROM timer))
               - clock_timestamp())::float8 AS seconds
