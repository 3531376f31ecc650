-- :name due_schedules
-- `clock_timestamp()` may tell each row another time, so it cannot bound an index: compared with it, the whole index of
-- what is not due was walked, seconds a poll with 5 million timers. `statement_timestamp()` stands still.
SELECT id, key, next_at, clock_timestamp() AS now FROM schedule
 WHERE next_at <= coalesce($1::timestamptz, statement_timestamp()) ORDER BY next_at LIMIT $2

-- :name advance_schedules
-- Compare and set: whoever comes second finds another next_at and changes nothing. The schedules are locked before, in a
-- statement of their own. Opens the firing in the same statement, so an instant that is past the cursor is always
-- either done or open.
WITH mine AS MATERIALIZED (
    SELECT s.id, x.* FROM schedule s
      JOIN unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[],
                  $6::timestamptz[], $7::timestamptz[])
           AS x(schedule, expected, through, fire, missed_from, missed_through, next_at)
        ON s.id = x.schedule AND s.next_at = x.expected
), moved AS (
    UPDATE schedule s SET cursor = mine.through, next_at = mine.next_at FROM mine WHERE s.id = mine.id
), missed AS (
    INSERT INTO firing (schedule, at, through, missed, closed_at)
    SELECT id, missed_from, missed_through, true, clock_timestamp() FROM mine WHERE missed_from IS NOT NULL
), opened AS (
    INSERT INTO firing (schedule, at, through) SELECT id, fire, fire FROM mine WHERE fire IS NOT NULL
)
SELECT id FROM mine

-- :name open_firings
-- The open firings and how far the next chunk of each would reach.
SELECT f.schedule, f.at, f.done_through, head.members, head.upto
  FROM (SELECT schedule, at, done_through FROM firing WHERE closed_at IS NULL ORDER BY at, schedule LIMIT $1) AS f
 CROSS JOIN LATERAL (
        SELECT count(*) AS members, max(job) AS upto
          FROM (SELECT job FROM subscription s WHERE s.schedule = f.schedule AND s.job > f.done_through
                 ORDER BY job LIMIT $2) AS page) AS head
 ORDER BY f.at, f.schedule

-- :name firing_flows
SELECT spec.lane, s.tenant, spec.priority, tenant.weight, count(*) AS runs
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[]) AS x(schedule, at, done, upto)
  JOIN subscription s ON s.schedule = x.schedule AND s.job > x.done AND s.job <= x.upto
                     AND s.after < x.at AND s.until >= x.at
  JOIN spec ON spec.id = s.spec
  JOIN tenant ON tenant.id = s.tenant
 GROUP BY 1, 2, 3, 4

-- :name lock_to_fire
-- Queues up behind edits: leaving a locked schedule for later starved it for 17 s while 10,000 jobs joined it. What
-- follows is a later statement, whose snapshot sees the edit that was waited for.
SELECT id FROM schedule WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE

-- :name lock_free_to_fire
-- After one edit held its schedule for longer than the lock time-out: all the others must not wait for it.
SELECT id FROM schedule WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED

-- :name fire_chunk
-- Makes the runs of these firings' next jobs. A job whose exclusive run is still going conflicts on run_occurrence; it
-- waits for a settle in mid-transaction, and what was not inserted is recorded as skipped. A job that nobody reserved a
-- rank for (it turned up since) is left to promote, which ranks it.
WITH target AS MATERIALIZED (
    SELECT f.schedule, f.at, x.done, x.upto, x.is_last
      FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[], $5::boolean[])
           AS x(schedule, at, done, upto, is_last)
      JOIN firing f ON f.schedule = x.schedule AND f.at = x.at AND f.done_through = x.done AND f.closed_at IS NULL
     ORDER BY f.schedule, f.at
       FOR UPDATE OF f
), member AS MATERIALIZED (
    SELECT t.schedule, t.at, s.job, s.tenant, s.spec, s.exclusive, s.closed, s.payload, spec.lane, spec.priority,
           $6::bigint + row_number() OVER (ORDER BY t.at, s.job) - 1 AS id,
           row_number() OVER (PARTITION BY spec.lane, s.tenant, spec.priority ORDER BY t.at, s.job) AS place
      FROM target t
      JOIN subscription s ON s.schedule = t.schedule AND s.job > t.done AND s.job <= t.upto
                         AND s.after < t.at AND s.until >= t.at
      JOIN spec ON spec.id = s.spec
), made AS (
    INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, rank, tenant, spec, state, payload)
    SELECT m.id, m.job, 0, CASE WHEN m.exclusive THEN '-infinity' ELSE m.at END, m.at, m.at,
           coalesce(flow.base + flow.step * m.place, 0), m.tenant, m.spec, (flow.base IS NOT NULL)::int, m.payload
      FROM member m
      LEFT JOIN unnest($7::int[], $8::int[], $9::smallint[], $10::bigint[], $11::bigint[])
           AS flow(lane, tenant, priority, base, step)
        ON flow.lane = m.lane AND flow.tenant = m.tenant AND flow.priority = m.priority
     WHERE NOT m.closed
     ORDER BY m.job
    ON CONFLICT (job, occurrence, origin) WHERE job IS NOT NULL DO NOTHING
    RETURNING id, rank, state
), queued AS (
    INSERT INTO ready (lane, rank, run)
    SELECT m.lane, made.rank, made.id FROM made JOIN member m ON m.id = made.id WHERE made.state = 1
), skipped AS (
    INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
    SELECT m.id, m.job, m.at, m.at, clock_timestamp(), m.tenant, m.spec, 0, 0, 8,
           CASE WHEN m.closed THEN 'the job was paused or cancelled' ELSE 'the previous run was still going' END
      FROM member m LEFT JOIN made ON made.id = m.id WHERE made.id IS NULL
), counted AS (
    SELECT m.schedule, m.at, count(made.id) AS fired, count(*) - count(made.id) AS skipped
      FROM member m LEFT JOIN made ON made.id = m.id GROUP BY 1, 2
), moved AS (
    UPDATE firing f SET done_through = coalesce(t.upto, t.done), fired = f.fired + coalesce(c.fired, 0),
                        skipped = f.skipped + coalesce(c.skipped, 0),
                        closed_at = CASE WHEN t.is_last THEN clock_timestamp() END
      FROM target t LEFT JOIN counted c ON c.schedule = t.schedule AND c.at = t.at
     WHERE f.schedule = t.schedule AND f.at = t.at
)
SELECT coalesce(sum(fired), 0)::int AS fired, coalesce(sum(skipped), 0)::int AS skipped FROM counted

-- :name rest_schedules
UPDATE schedule SET next_at = NULL
 WHERE id = ANY ($1::bigint[])
   AND NOT EXISTS (SELECT FROM subscription s WHERE s.schedule = schedule.id AND s.until > clock_timestamp())

-- :name next_fire
SELECT extract(epoch FROM next_at - clock_timestamp())::float8 AS seconds FROM schedule
 WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1
