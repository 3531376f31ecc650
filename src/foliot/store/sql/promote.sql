-- :name due_runs
-- Runs in the hot table whose time has come. Retries and whatever else was claimed before (`again`) are ranked in a flow of
-- their own; rank 0 is work that nobody has ranked yet, such as a replay that was held by a pause. The statement's clock
-- bounds the index, as in `due_schedules`. A run's shard mixes the number of its block with its place in the block: one
-- alone stands at the beginning of its block, many stand side by side in one, and both are to be dealt out evenly.
-- A floor ($5) from the future stands for nothing: the clock was set back since.
SELECT run.id, spec.lane, run.tenant, spec.priority, tenant.weight, run.fence > 0 AND run.rank > 0 AS again,
       run.due_at, run.tied IS NOT NULL OR spec.concurrency IS NOT NULL OR tenant.concurrency IS NOT NULL AS limited
  FROM (SELECT id, tenant, spec, fence, rank, due_at, tied FROM run
         WHERE state = 0 AND due_at <= coalesce($1::timestamptz, statement_timestamp()) - coalesce($4::interval, '0')
           AND due_at >= CASE WHEN $5::timestamptz < coalesce($1, statement_timestamp()) THEN $5 ELSE '-infinity' END
           AND ($3::smallint[] IS NULL OR (((id >> 12) # id) & 255)::smallint = ANY ($3))
         ORDER BY due_at LIMIT $2) AS run
  JOIN spec ON spec.id = run.spec
  JOIN tenant ON tenant.id = run.tenant

-- :name due_timers
SELECT timer.id, spec.lane, timer.tenant, spec.priority, tenant.weight, false AS again, timer.due_at,
       spec.concurrency IS NOT NULL OR tenant.concurrency IS NOT NULL AS limited
  FROM (SELECT id, tenant, spec, due_at FROM timer
         WHERE due_at <= coalesce($1::timestamptz, statement_timestamp()) - coalesce($4::interval, '0')
           AND due_at >= CASE WHEN $5::timestamptz < coalesce($1, statement_timestamp()) THEN $5 ELSE '-infinity' END
           AND ($3::smallint[] IS NULL OR (((id >> 12) # id) & 255)::smallint = ANY ($3))
         ORDER BY due_at LIMIT $2) AS timer
  JOIN spec ON spec.id = timer.spec
  JOIN tenant ON tenant.id = timer.tenant

-- :name promote_runs
-- State and time are looked at again under the row's lock: a second promoter that came first wins, and what has been run
-- since and waits for another time must not start at this one. The job is locked before
-- its run, as owners do: a gate read without the lock could close or open unseen, and the run would start while paused
-- or stay blocked for ever. `state < 1` and not `= 0`, because that would invite the planner to walk all of run_due for
-- every row: with 100,000 waiting runs a batch of 200 took 6 s.
-- A run of an exclusive job that has waited for its phase takes the job's only place now, or is skipped. If a rival takes
-- it in the same moment, the unique index says so and the batch is tried again.
-- Runs under a limit come without a rank and are blocked: `enter` follows in the same transaction. Of an overlap that lets
-- one run wait (queueOne) the place to wait in is asked for likewise, once.
WITH found AS MATERIALIZED (
    SELECT x.id, x.lane, x.rank, job.gate, run.job, run.scheduled_at,
           coalesce(run.origin = 0 AND run.occurrence > '-infinity'
                    AND (job.exclusive OR (job.overlap = 1 AND (SELECT seat.run FROM seat WHERE seat.run = run.id LIMIT 1)
                                                               IS NULL)), false) AS asks
      FROM unnest($1::bigint[], $2::int[], $3::bigint[]) AS x(id, lane, rank) JOIN run ON run.id = x.id
      LEFT JOIN LATERAL (SELECT gate, exclusive, overlap FROM job WHERE job.id = run.job FOR KEY SHARE) AS job ON true
), due AS MATERIALIZED (
    SELECT id, lane, rank, gate, asks,
           asks AND (row_number() OVER (PARTITION BY job, asks ORDER BY scheduled_at) > 1
                     OR EXISTS (SELECT FROM run other WHERE other.job = found.job AND other.occurrence = '-infinity'
                                                        AND other.origin = 0)) AS taken
      FROM found
), skipped AS (
    DELETE FROM run USING due
     WHERE run.id = due.id AND run.state < 1 AND run.due_at <= coalesce($4::timestamptz, statement_timestamp()) AND due.taken
    RETURNING run.id, run.job, run.scheduled_at, run.due_at, run.tenant, run.spec, run.tied
), told AS (
    INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
    SELECT id, job, scheduled_at, due_at, clock_timestamp(), tenant, spec, 0, 0, 8,
           CASE WHEN tied THEN 'another run waits already' ELSE 'the previous run was still going' END
      FROM skipped
), moved AS (
    UPDATE run SET state = CASE WHEN due.gate = 1 OR due.rank IS NULL THEN 2 ELSE 1 END,
                   rank = coalesce(due.rank, run.rank),
                   tied = CASE WHEN due.rank IS NULL THEN true ELSE run.tied END,
                   occurrence = CASE WHEN due.asks THEN '-infinity' ELSE run.occurrence END
      FROM due
     WHERE run.id = due.id AND run.state < 1 AND run.due_at <= coalesce($4::timestamptz, statement_timestamp())
       AND NOT due.taken
    RETURNING run.id, run.state, due.lane, due.rank, due.gate
), queued AS (
    INSERT INTO ready (lane, rank, run) SELECT lane, rank, id FROM moved WHERE state = 1
)
SELECT (SELECT count(*) FROM moved) + (SELECT count(*) FROM skipped) AS moved,
       ARRAY(SELECT id FROM moved WHERE rank IS NULL AND gate IS DISTINCT FROM 1) AS enter

-- :name promote_timers
-- Whether the job is paused stands in the timer itself. Whoever pauses, resumes or cancels writes the timer in one
-- statement and looks at the job's runs in a later one: either we find its mark, or it finds our run.
WITH gone AS (
    DELETE FROM timer USING unnest($1::bigint[], $2::int[], $3::bigint[]) AS due(id, lane, rank) WHERE timer.id = due.id
    RETURNING timer.*, due.lane, due.rank, CASE WHEN timer.held OR due.rank IS NULL THEN 2 ELSE 1 END AS state
), made AS (
    INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, rank, tenant, spec, state, target, payload,
                     limit_key, tied)
    SELECT id, job, origin, CASE WHEN job IS NOT NULL THEN due_at END, scheduled_at, due_at, coalesce(rank, 0), tenant, spec,
           state, target, payload, limit_key, CASE WHEN rank IS NULL THEN true END
      FROM gone
), queued AS (
    INSERT INTO ready (lane, rank, run) SELECT lane, rank, id FROM gone WHERE state = 1
)
SELECT count(*) AS moved, coalesce(array_agg(id) FILTER (WHERE rank IS NULL AND NOT held), '{}') AS enter FROM gone

-- :name next_due
-- The first entry of each index: with min() PostgreSQL 16 may walk the whole index of a table it believes small.
-- Ballast is due at infinity, which cannot be subtracted from.
SELECT extract(epoch FROM least(
           (SELECT due_at FROM run
             WHERE state = 0 AND due_at >= CASE WHEN $3::timestamptz < statement_timestamp() THEN $3 ELSE '-infinity' END
               AND ($1::smallint[] IS NULL OR (((id >> 12) # id) & 255)::smallint = ANY ($1))
             ORDER BY due_at LIMIT 1),
           (SELECT due_at FROM timer
             WHERE due_at < 'infinity' AND due_at >= CASE WHEN $2::timestamptz < statement_timestamp() THEN $2 ELSE '-infinity' END
               AND ($1::smallint[] IS NULL OR (((id >> 12) # id) & 255)::smallint = ANY ($1))
             ORDER BY due_at LIMIT 1)) - clock_timestamp())::float8 AS seconds
