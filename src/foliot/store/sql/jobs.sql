-- :name job_names
SELECT id, name FROM job WHERE id = ANY ($1::bigint[])

-- :name draw_blocks
SELECT nextval('id_block') AS block, clock_timestamp() AS at FROM generate_series(1, $1::int)

-- :name clock
SELECT clock_timestamp()

-- :name runs_left
SELECT runs_left FROM job WHERE tenant = $1 AND id = $2

-- :name release_keys
-- A cancelled job stays readable by its id; its key is free for the job that comes after it. Locked by key, as inserts
-- are sorted: two batches with the same keys wait for each other instead of deadlocking.
WITH over AS (SELECT id FROM job WHERE tenant = $1 AND key = ANY ($2::text[]) AND gate = 2 ORDER BY key FOR UPDATE)
UPDATE job SET key = NULL FROM over WHERE job.id = over.id

-- :name insert_jobs
-- Sorted by key, so that two batches with the same keys wait for each other instead of deadlocking.
INSERT INTO job (id, tenant, name, key, spec, kind, exclusive, schedule, run, timing, labels, payload, runs_left, overlap,
                 limit_key)
SELECT id, tenant, name, key, spec, kind, exclusive, schedule, run, timing::jsonb, labels::jsonb, payload, runs_left,
       overlap, limit_key
  FROM unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::int[], $6::smallint[], $7::boolean[], $8::bigint[],
              $9::bigint[], $10::text[], $11::text[], $12::bytea[], $13::int[], $14::smallint[], $15::bigint[])
       AS x(id, tenant, name, key, spec, kind, exclusive, schedule, run, timing, labels, payload, runs_left, overlap,
            limit_key)
 ORDER BY tenant, key, id
ON CONFLICT (tenant, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id

-- :name update_job
-- A new maxRuns counts from here; one that stays goes on with what is left of it.
UPDATE job SET name = $3, spec = $4, kind = $5, exclusive = $6, schedule = $7, run = $8, timing = $9::jsonb,
               labels = $10::jsonb, payload = $11, overlap = $14, limit_key = $15,
               runs_left = CASE WHEN (timing->>'maxRuns')::int IS NOT DISTINCT FROM $12 THEN runs_left ELSE $12 END,
               paused_at = CASE WHEN gate = 1 THEN $13::timestamptz END,
               version = version + 1, updated_at = clock_timestamp()
 WHERE tenant = $1 AND id = $2

-- :name lock_job
-- How the only run of a one-time job ended is in history and nowhere else: a row of `job` written with each settle cost
-- 113 µs with ten million jobs.
SELECT id, kind, gate, schedule, run, version,
       (SELECT h.state FROM history h WHERE h.job = job.id AND h.run = job.run AND h.state > 3
         ORDER BY h.finished_at DESC LIMIT 1) AS ended_state, clock_timestamp() AS now
  FROM job
 WHERE tenant = $1 AND id = $2 FOR UPDATE

-- :name lock_jobs
-- In order, so that two who lock several cannot deadlock.
SELECT id, gate, version, clock_timestamp() AS now FROM job WHERE tenant = $1 AND id = ANY ($2::bigint[]) ORDER BY id
   FOR UPDATE

-- :name move_jobs
UPDATE job SET schedule = x.schedule, paused_at = CASE WHEN gate = 1 THEN $3::timestamptz END,
               version = version + 1, updated_at = clock_timestamp()
  FROM unnest($1::bigint[], $2::bigint[]) AS x(job, schedule) WHERE job.id = x.job

-- :name find_job
SELECT *, (SELECT paused_at FROM job WHERE job.id = job_view.id) FROM job_view WHERE tenant = $1 AND id = $2

-- :name find_jobs
SELECT *, (SELECT paused_at FROM job WHERE job.id = job_view.id) FROM job_view
 WHERE tenant = $1 AND id = ANY ($2::bigint[]) ORDER BY id

-- :name find_job_by_key
-- A cancelled job has no claim to its key any more: see release_keys.
SELECT id FROM job WHERE tenant = $1 AND key = $2 AND gate <> 2

-- :name list_jobs
-- Newest first. Jobs are walked in that order and looked at one by one until there are enough: it takes a look into half
-- a dozen tables, for 20,000 jobs at 461,000 pages and for 50 at 1,500. OFFSET 0 keeps the planner from doing that for all.
SELECT seen.*, page.paused_at
  FROM (SELECT id, paused_at FROM job
         WHERE tenant = $1 AND id < $2 AND ($4::text IS NULL OR name = $4) AND ($5::jsonb IS NULL OR labels @> $5)
           AND ($6::smallint IS NULL OR kind = $6)
         ORDER BY id DESC OFFSET 0) AS page
 CROSS JOIN LATERAL (SELECT * FROM job_view WHERE job_view.id = page.id OFFSET 0) AS seen
 WHERE $3::text IS NULL OR seen.status = $3
 ORDER BY page.id DESC LIMIT $7

-- :name set_gate
UPDATE job SET gate = $3::smallint, paused_at = CASE WHEN $3::smallint = 1 THEN $4::timestamptz END, version = version + 1, updated_at = clock_timestamp() WHERE tenant = $1 AND id = $2

-- :name record_pause
-- The instants of a pause, now that it is over or goes on with another definition: one row says that all were skipped.
INSERT INTO past_subscription (schedule, job, after, until, tenant, closed, paused)
SELECT schedule, id, after, until, tenant, true, true
  FROM (SELECT schedule, id, tenant,
               greatest(paused_at, (timing->>'scheduleAt')::timestamptz - interval '1 microsecond') AS after,
               least($2, (timing->>'endsAt')::timestamptz) AS until
          FROM job WHERE id = ANY ($1::bigint[]) AND gate = 1 AND schedule IS NOT NULL AND runs_left IS DISTINCT FROM 0) AS pause
 WHERE after < until

-- :name find_schedules
SELECT id, key FROM schedule WHERE tenant = $1 AND key = ANY ($2::text[])

-- :name make_schedules
-- Sorted, so that two batches with the same recurrences wait for each other instead of deadlocking. Created asleep; whoever subscribes wakes it under its lock. One that is there already is not touched: DO UPDATE would
-- lock it before its turn, and two edits that swap schedules would deadlock.
INSERT INTO schedule (tenant, key, cursor) SELECT $1, key, clock_timestamp() FROM unnest($2::text[]) AS key ORDER BY key
ON CONFLICT (tenant, key) DO NOTHING
RETURNING id, key

-- :name lock_schedules
SELECT id, key, cursor, next_at FROM schedule WHERE id = ANY ($1::bigint[]) ORDER BY id
   FOR NO KEY UPDATE

-- :name schedules_followed
-- That of now, and those of earlier definitions that still own an instant, fired or not.
SELECT schedule FROM subscription WHERE job = $1
 UNION
SELECT schedule FROM subscription WHERE head = $2

-- :name wake_schedules
UPDATE schedule SET cursor = x.cursor, next_at = x.next_at
  FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS x(id, cursor, next_at)
 WHERE schedule.id = x.id AND schedule.next_at IS NULL

-- :name subscribe
-- What a subscription repeats of its job is taken from the job's row: the schedule is locked, and ten thousand payloads
-- on their way from the client would hold up its firing. What the schedule has dealt with is not theirs, even if the
-- clock was set back since: nobody would fire it.
INSERT INTO subscription (schedule, job, after, until, tenant, spec, exclusive, payload, catch_up, catch_up_window,
                          phase, counted, limit_key, overlap, head)
SELECT job.schedule, job.id, greatest(x.after, schedule.cursor),
       greatest(coalesce(x.until, 'infinity'), x.after, schedule.cursor), job.tenant, job.spec, job.exclusive,
       job.payload, x.catch_up, x.catch_up_window, x.phase, job.runs_left IS NOT NULL, job.limit_key,
       nullif(job.overlap, 0), job.head
  FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::smallint[], $5::int[], $6::int[])
       AS x(job, after, until, catch_up, catch_up_window, phase)
  JOIN job ON job.id = x.job
  JOIN schedule ON schedule.id = job.schedule
 WHERE job.runs_left IS DISTINCT FROM 0

-- :name reach_back
-- Under the schedules' locks: how far back their jobs may want late instants. Hardly ever changes, so hardly ever writes.
UPDATE schedule SET latest_within = greatest(schedule.latest_within, x.latest_within),
                    all_within = greatest(schedule.all_within, x.all_within)
  FROM (SELECT job.schedule, coalesce(max(x.catch_up_window) FILTER (WHERE x.catch_up = 1), 0) AS latest_within,
               coalesce(max(x.catch_up_window) FILTER (WHERE x.catch_up = 2), 0) AS all_within
          FROM unnest($1::bigint[], $2::smallint[], $3::int[]) AS x(job, catch_up, catch_up_window)
          JOIN job ON job.id = x.job GROUP BY 1) AS x
 WHERE schedule.id = x.schedule AND (schedule.latest_within < x.latest_within OR schedule.all_within < x.all_within)

-- :name end_subscription
-- Instants up to $2 stay with the old definition. If none of them is still to be fired, the row has done its work.
-- Closing reaches back to definitions that had ended before: what they still own is not fired any more either.
WITH ended AS (
    UPDATE subscription SET until = least(until, $2), closed = closed OR $3
     WHERE job = ANY ($1::bigint[]) AND after < $2 AND (until > $2 OR $3)
)
DELETE FROM subscription WHERE job = ANY ($1::bigint[]) AND after >= $2

-- :name retire_subscription
WITH past AS (
    DELETE FROM subscription s USING schedule c
     WHERE s.job = ANY ($1::bigint[]) AND s.until <= $2 AND c.id = s.schedule AND coalesce(c.next_at, 'infinity') > $2
       AND NOT EXISTS (SELECT FROM firing f WHERE f.schedule = s.schedule AND f.closed_at IS NULL)
    RETURNING s.*
)
INSERT INTO past_subscription (schedule, job, after, until, tenant, closed, catch_up, catch_up_window)
SELECT schedule, job, after, until, tenant, closed, catch_up, catch_up_window FROM past

-- :name take_back_run
-- The waiting run of a one-time job, unless it is ready, or a worker has it or had it (its fence says so); no row if so.
-- What was tried has had its instant: another run of that would be a second one.
WITH from_timer AS (
    DELETE FROM timer WHERE id = $1 RETURNING id
), from_run AS (
    DELETE FROM run WHERE id = $1 AND state IN (0, 2) AND fence = 0 RETURNING id
)
SELECT id FROM from_timer UNION ALL SELECT id FROM from_run

-- :name cancel_timers
-- Before `cancel_runs`, in a statement of its own: what promote took meanwhile is a run by then.
WITH untimed AS (
    DELETE FROM timer WHERE id = $2 OR (job = $1 AND origin > 1)
    RETURNING id, scheduled_at, due_at, tenant, spec
)
INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
SELECT id, $1, scheduled_at, due_at, clock_timestamp(), tenant, spec, 0, 0, 6, 'the job was cancelled' FROM untimed

-- :name cancel_runs
-- What waits, is ready or is blocked ends here; what a worker holds goes on. The ready row goes first: whoever pops it
-- owns the run. Whoever makes waiting runs of a job ready (promote, conclude, reap) locks the job first, so nothing
-- slips by; what comes from a timer was a timer that `cancel_timers` took, or is a run by now.
WITH popped AS (
    DELETE FROM ready USING run JOIN spec ON spec.id = run.spec
     WHERE run.job = $1 AND ready.lane = spec.lane AND ready.rank = run.rank AND ready.run = run.id
    RETURNING ready.run
), gone AS (
    DELETE FROM run WHERE job = $1 AND (state IN (0, 2) OR id IN (SELECT run FROM popped))
    RETURNING id, scheduled_at, due_at, tenant, spec, attempt
)
INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
SELECT id, $1, scheduled_at, due_at, clock_timestamp(), tenant, spec, attempt, 0, 6, 'the job was cancelled'
  FROM gone

-- :name hold_timers
-- Before `block_runs` and `unblock_runs`, in a statement of its own, as `cancel_timers`.
UPDATE timer SET held = $3 WHERE (id = $2 OR (job = $1 AND origin > 1)) AND held <> $3

-- :name block_runs
WITH popped AS (
    DELETE FROM ready USING run JOIN spec ON spec.id = run.spec
     WHERE run.job = $1 AND ready.lane = spec.lane AND ready.rank = run.rank AND ready.run = run.id
    RETURNING ready.run
)
UPDATE run SET state = 2 WHERE job = $1 AND (state = 0 OR id IN (SELECT run FROM popped))

-- :name unblock_runs
-- Those that stand in a line again stay where they are, and so do those that wait for their parents.
UPDATE run SET state = 0
 WHERE job = $1 AND state = 2
   AND (tied IS NULL OR NOT EXISTS (SELECT FROM seat WHERE seat.run = run.id AND seat.state BETWEEN 1 AND 1)
                         AND NOT EXISTS (SELECT FROM node WHERE node.run = run.id AND node.state = 0))
