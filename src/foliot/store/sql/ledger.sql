-- :name stretches
-- Which definitions of a job owned its instants between $2 and $3, and when it was paused; the latest first.
SELECT owned.schedule, schedule.key, schedule.cursor, greatest(owned.after, $2) AS after, least(owned.until, $3) AS until,
       owned.catch_up, owned.catch_up_window, owned.paused
  FROM (SELECT schedule, after, until, catch_up, catch_up_window, false AS paused FROM subscription WHERE job = $1
        UNION ALL
        SELECT schedule, after, until, catch_up, catch_up_window, paused FROM past_subscription WHERE job = $1
        UNION ALL
        SELECT schedule, greatest(paused_at, (timing->>'scheduleAt')::timestamptz - interval '1 microsecond'),
               coalesce((timing->>'endsAt')::timestamptz, 'infinity'), 1::smallint, 0, true
          FROM job WHERE id = $1 AND gate = 1 AND schedule IS NOT NULL AND runs_left IS DISTINCT FROM 0
           -- Of a job with parents runs are made all the same, and wait.
           AND NOT EXISTS (SELECT FROM dependency d WHERE d.child = job.id AND d.until = 'infinity')) AS owned
  JOIN schedule ON schedule.id = owned.schedule
 WHERE owned.after < $3 AND owned.until > $2 AND owned.after < owned.until
 ORDER BY owned.after DESC

-- :name firings_of
-- The records of a schedule that cover instants between $2 and $3. They do not overlap, so of those that begin before
-- $2 only the last can reach into it.
SELECT at, through, opened_at, closed_at IS NULL AS is_open, missed, late_through IS NOT NULL AS late,
       coalesce(closed_at, clock_timestamp()) AS closed_at
  FROM firing WHERE schedule = $1 AND at BETWEEN $2 AND $3
UNION ALL
(SELECT at, through, opened_at, closed_at IS NULL, missed, late_through IS NOT NULL, coalesce(closed_at, clock_timestamp())
   FROM firing WHERE schedule = $1 AND at < $2 ORDER BY at DESC LIMIT 1)

-- :name traces
-- The runs of a job's instants. Finished ones are looked for where ids of that time can be, because history is not
-- indexed by instant: every settle would pay for it. Those of a back-fill have the instant of another, and so may those by
-- hand. A run that was replayed has an origin of its own.
SELECT live_run.id AS run, run.scheduled_at, run.due_at, live_run.state, NULL::text AS note
  FROM run JOIN live_run ON live_run.id = run.id
 WHERE run.job = $1 AND run.scheduled_at = ANY ($2::timestamptz[])
   AND (run.origin = 0
        OR (run.forgiven IS NOT NULL
            AND NOT EXISTS (SELECT FROM operation JOIN operation_item item ON item.operation = operation.id
                             WHERE operation.job = $1 AND item.at = run.scheduled_at AND item.run = run.id)
            AND NOT EXISTS (SELECT FROM by_hand b WHERE b.job = $1 AND b.at = run.scheduled_at AND b.run = run.id)))
UNION ALL
(SELECT DISTINCT ON (h.scheduled_at) h.run, h.scheduled_at, h.due_at, h.state, h.error
   FROM unnest($3::bigint[], $4::bigint[]) AS span(low, high)
   JOIN history h ON h.job = $1 AND h.run >= span.low AND h.run < span.high
  WHERE h.scheduled_at = ANY ($2::timestamptz[]) AND h.state > 3
    AND NOT EXISTS (SELECT FROM operation JOIN operation_item item ON item.operation = operation.id
                     WHERE operation.job = $1 AND item.at = h.scheduled_at AND item.run = h.run)
    AND NOT EXISTS (SELECT FROM by_hand b WHERE b.job = $1 AND b.at = h.scheduled_at AND b.run = h.run)
  ORDER BY h.scheduled_at, h.run, h.finished_at DESC)

-- :name one_time_instants
-- The instants in ($2, $3] that a job's one-time definitions have had, and their runs; the latest first. A definition that
-- was changed before its instant never had it. Of those before the present one the run has ended, or was taken back.
SELECT DISTINCT ON (owned.at) owned.at, owned.is_present, owned.paused, found.run, found.due_at, found.state, found.attempt,
       found.note
  FROM (SELECT (timing->>'scheduleAt')::timestamptz AS at, true AS is_present, gate = 1 AS paused, run
          FROM job WHERE id = $1 AND kind = 1
        UNION ALL
        SELECT (timing->>'scheduleAt')::timestamptz, false, false, NULL
          FROM job_version WHERE job = $1 AND kind = 1 AND until >= (timing->>'scheduleAt')::timestamptz) AS owned
  LEFT JOIN LATERAL (
        SELECT timer.id AS run, timer.due_at, 0 AS state, 0 AS attempt, NULL::text AS note
          FROM timer WHERE timer.id = owned.run
        UNION ALL
        SELECT live.id, live.due_at, live.state, live.attempt, NULL FROM live_run live WHERE live.id = owned.run
        UNION ALL
        (SELECT h.run, h.due_at, h.state, h.attempt, h.error
           FROM history h WHERE h.job = $1 AND h.run = owned.run AND h.state > 3 ORDER BY h.finished_at DESC LIMIT 1)
        UNION ALL
        (SELECT h.run, h.due_at, h.state, h.attempt, h.error
           FROM history h
          WHERE NOT owned.is_present AND h.job = $1 AND h.scheduled_at = owned.at AND h.state > 3
            AND NOT EXISTS (SELECT FROM by_hand b WHERE b.job = $1 AND b.at = h.scheduled_at AND b.run = h.run)
          ORDER BY h.run DESC, h.finished_at DESC LIMIT 1)
         LIMIT 1) AS found ON true
 WHERE owned.at > $2 AND owned.at <= $3
 ORDER BY owned.at DESC, owned.is_present DESC

-- :name filled_back
-- The last run that a back-fill made for each of these instants.
SELECT DISTINCT ON (item.at) item.at, item.run
  FROM operation JOIN operation_item item ON item.operation = operation.id
 WHERE operation.job = $1 AND item.at = ANY ($2::timestamptz[]) AND item.run IS NOT NULL
 ORDER BY item.at, item.run DESC

-- :name gaps
-- Records of instants that were missed or came up late, newest first, and how many jobs of the tenant went without.
-- Counted up to a bound: a schedule may be shared by a million.
SELECT f.schedule, schedule.key, f.at, f.through, f.opened_at, mine.jobs, job.id AS job, job.name
  FROM firing f
  JOIN schedule ON schedule.id = f.schedule
 CROSS JOIN LATERAL (
        SELECT count(*) AS jobs, min(job) AS example
          FROM (SELECT s.job
                  FROM (SELECT schedule, job, tenant, after, until, catch_up, catch_up_window FROM subscription
                        UNION ALL
                        SELECT schedule, job, tenant, after, until, catch_up, catch_up_window FROM past_subscription
                         WHERE NOT paused) AS s
                 WHERE s.schedule = f.schedule AND s.tenant = $1 AND s.after < f.through AND s.until >= f.at
                   AND (f.missed OR NOT catches_up(s.catch_up, s.catch_up_window, s.until, f.at, f.opened_at,
                                                   f.following, f.late_through))
                 LIMIT 1000) AS without) AS mine
  JOIN job ON job.id = mine.example
 WHERE (f.missed OR f.late_through IS NOT NULL) AND f.at >= $2 AND f.at < $3 AND (f.at, f.schedule) < ($4, $5::bigint)
 ORDER BY f.at DESC, f.schedule DESC LIMIT $6
