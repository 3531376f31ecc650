-- :name due_schedules
-- Those that are on time before those that are late: an outage's worth of schedules must not hold up the others.
-- `clock_timestamp()` may tell each row another time, so it cannot bound an index: compared with it, the whole index of
-- what is not due was walked, seconds a poll with 5 million timers. `statement_timestamp()` stands still. Of others'
-- shards only what is due is walked over, and they are at work on it. The floor is that of `due_timers`.
(SELECT id, key, next_at, clock_timestamp() AS now, latest_within, all_within FROM schedule
  WHERE next_at <= coalesce($1::timestamptz, statement_timestamp()) - coalesce($6::interval, '0')
    AND next_at >= greatest(coalesce($1::timestamptz, statement_timestamp()) - $3::interval,
                            CASE WHEN $7::timestamptz < coalesce($1, statement_timestamp()) THEN $7 END)
    AND ($5::smallint[] IS NULL OR shard = ANY ($5))
  ORDER BY next_at LIMIT $2)
UNION ALL
(SELECT id, key, next_at, clock_timestamp() AS now, latest_within, all_within FROM schedule
  WHERE next_at < coalesce($1::timestamptz, statement_timestamp()) - $3::interval
    AND next_at >= CASE WHEN $7::timestamptz < coalesce($1, statement_timestamp()) THEN $7 ELSE '-infinity' END
    AND ($5::smallint[] IS NULL OR shard = ANY ($5))
  ORDER BY next_at LIMIT $4)

-- :name read_ahead
-- `phase` stands in no index, so that the rows themselves are read: as many of each schedule as its first chunk has. A
-- mark that lies beyond what is in sight stands for nothing: the clock was set back since.
SELECT max(next_at) AS through, count(phase) AS members
  FROM (SELECT coming.next_at, member.phase
          FROM (SELECT id, next_at FROM schedule
                 WHERE next_at > CASE WHEN $1::timestamptz <= statement_timestamp() + $2::interval
                                      THEN greatest($1, statement_timestamp()) ELSE statement_timestamp() END
                   AND next_at <= statement_timestamp() + $2
                   AND ($3::smallint[] IS NULL OR shard = ANY ($3))
                 ORDER BY next_at LIMIT 1000) AS coming
         CROSS JOIN LATERAL (
                SELECT s.phase FROM subscription s WHERE s.schedule = coming.id ORDER BY s.job LIMIT 2000) AS member
         LIMIT 20000) AS met

-- :name endings
-- Where jobs of these schedules end among the instants that are late: each of them has a latest one of its own.
SELECT x.schedule, ending.until
  FROM unnest($1::bigint[], $2::timestamptz[]) AS x(schedule, next_at)
 CROSS JOIN LATERAL (
        SELECT DISTINCT s.until FROM subscription s
         WHERE s.schedule = x.schedule AND s.until >= x.next_at AND s.until < $3::timestamptz
         ORDER BY s.until LIMIT $4) AS ending

-- :name advance_schedules
-- Compare and set: whoever comes second finds another next_at and changes nothing. The schedules are locked before, in a
-- statement of their own. Opens the firings in the same statement, so an instant that is past the cursor is always
-- either done or open.
WITH mine AS MATERIALIZED (
    SELECT s.id, x.through, x.next_at FROM schedule s
      JOIN unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[])
           AS x(schedule, expected, through, next_at)
        ON s.id = x.schedule AND s.next_at = x.expected
), moved AS (
    UPDATE schedule s SET cursor = mine.through, next_at = mine.next_at FROM mine WHERE s.id = mine.id
), opened AS (
    INSERT INTO firing (schedule, at, through, following, late_through, missed, opened_at, closed_at)
    SELECT x.schedule, x.at, x.through, x.following, x.late_through, x.missed, now.now,
           CASE WHEN x.missed THEN now.now END
      FROM unnest($5::bigint[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[], $9::timestamptz[],
                  $10::boolean[]) AS x(schedule, at, through, following, late_through, missed)
      JOIN mine ON mine.id = x.schedule
     CROSS JOIN (SELECT coalesce($11::timestamptz, clock_timestamp()) AS now) AS now
)
SELECT id FROM mine

-- :name open_firings
-- The open firings that are on time and how far the next chunk of each would reach; those that nobody has begun come
-- first, and their first chunk is shorter. One that was opened in the future is overdue too: the clock was set back since.
SELECT f.schedule, f.at, f.done_through, head.members, head.upto, head.members < f.most AS is_last, false AS late
  FROM (SELECT schedule, at, done_through, CASE WHEN done_through = 0 THEN $5::bigint ELSE $2 END AS most
          FROM firing WHERE closed_at IS NULL AND late_through IS NULL
           AND ($3::smallint[] IS NULL OR (schedule % 256)::smallint = ANY ($3))
           AND ($4::interval IS NULL OR at <= clock_timestamp() - $4 OR opened_at > clock_timestamp())
         ORDER BY done_through > 0, at, schedule LIMIT $1) AS f
 CROSS JOIN LATERAL (
        SELECT count(*) AS members, max(job) AS upto
          FROM (SELECT job FROM subscription s WHERE s.schedule = f.schedule AND s.job > f.done_through
                 ORDER BY job LIMIT f.most) AS page) AS head
 ORDER BY f.done_through > 0, f.at, f.schedule

-- :name late_firings
-- The same for instants that came up late.
SELECT f.schedule, f.at, f.done_through, head.members, head.upto, head.members < f.most AS is_last, true AS late
  FROM (SELECT schedule, at, done_through, $2::bigint AS most
          FROM firing WHERE closed_at IS NULL AND late_through IS NOT NULL
           AND ($3::smallint[] IS NULL OR (schedule % 256)::smallint = ANY ($3))
           AND ($4::interval IS NULL OR opened_at <= clock_timestamp() - $4 OR opened_at > clock_timestamp())
         ORDER BY at, schedule LIMIT $1) AS f
 CROSS JOIN LATERAL (
        SELECT count(*) AS members, max(job) AS upto
          FROM (SELECT job FROM subscription s WHERE s.schedule = f.schedule AND s.job > f.done_through
                 ORDER BY job LIMIT f.most) AS page) AS head
 ORDER BY f.at, f.schedule

-- :name firing_flows
-- What is late goes into its tenant's bulk flow, so that what is on time overtakes it; what waits for its phase is
-- ranked when that has come. Counted by spec, which has one tenant and one lane, before anything is joined: 1.1 us a job
-- instead of 3.5. What is under a limit is ranked when it is let in. Jobs of graphs are fired apart, and looked for
-- whatever their phase is. Members are looked up by schedule and job at once, and by nothing else: in other words the
-- planner took all jobs that were made between the first and the last of a chunk, and with `s.schedule = x.schedule` in
-- front the index is walked through all of a schedule for each chunk, whatever stands behind it (of 100,000 jobs 4.3 ms
-- instead of 1.5).
SELECT spec.id AS spec, spec.lane, spec.tenant, CASE WHEN counted.late THEN 4 ELSE spec.priority END AS priority,
       tenant.weight, counted.runs, spec.concurrency IS NOT NULL OR tenant.concurrency IS NOT NULL AS limited, counted.graphs
  FROM (SELECT s.spec, f.late_through IS NOT NULL AS late, count(*) FILTER (WHERE s.head IS NULL) AS runs,
               coalesce(bool_or(s.head = s.job), false) AS graphs
          FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[]) AS x(schedule, at, done, upto)
          JOIN firing f ON f.schedule = x.schedule AND f.at = x.at
         CROSS JOIN LATERAL (
                SELECT * FROM subscription s
                 WHERE (s.schedule, s.job) > (x.schedule, x.done)
                   AND (s.schedule, s.job) <= (x.schedule, x.upto) AND s.after < x.at AND s.until >= x.at OFFSET 0) AS s
         WHERE (s.head IS NOT NULL OR (s.overlap IS NULL AND (s.phase = 0 OR f.late_through IS NOT NULL)))
           AND (f.late_through IS NULL
                OR catches_up(s.catch_up, s.catch_up_window, s.until, f.at, f.opened_at, f.following, f.late_through))
         GROUP BY 1, 2) AS counted
  JOIN spec ON spec.id = counted.spec
  JOIN tenant ON tenant.id = spec.tenant

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
-- rank for (it turned up since) is left to promote, which ranks it; so is one that waits for its phase, and whether its
-- previous run is still going is asked then. Jobs that have used up their runs do not fire any more: their rows are
-- locked, because another schedule may fire an older definition of the same job. What is on time is made before what is
-- late: so if the last run goes to a late instant, others behind it have had theirs and stay the job's own.
-- Half of the 20 us a job went into copying rows from step to step, the other half into the inserts. So a spec finds its
-- flow by bisection in the parameters ($7 is sorted) and not by joins; there are no more steps, sorts and columns than
-- needed (a CTE with FOR UPDATE in it is always written down first, hence the nesting); `ready` is fed by what `run`
-- took, and who was left out is looked for only if somebody was. That by NOT IN, which is a hashed lookup whatever the
-- planner believes: it knows nothing of how many rows these steps give, and with joins it chose loops, 1.4 s instead of
-- 40 ms for 2,000 jobs. IS TRUE keeps an IN from becoming a join.
-- Runs under a limit ($12: those specs) and of an overlap that lets them wait are blocked: `enter` follows. Where one may
-- wait (overlap 1) its occurrence is -infinity while it does, so that a second one conflicts and is recorded as skipped.
WITH target AS MATERIALIZED (
    SELECT f.schedule, f.at, x.done, x.upto, x.is_last, f.opened_at, f.following, f.late_through
      FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[], $5::boolean[])
           AS x(schedule, at, done, upto, is_last)
      JOIN firing f ON f.schedule = x.schedule AND f.at = x.at AND f.done_through = x.done AND f.closed_at IS NULL
     ORDER BY f.schedule, f.at
       FOR UPDATE OF f
), member AS MATERIALIZED (
    SELECT p.schedule, p.at, p.job, p.tenant, p.spec, p.closed, p.counted, p.payload, p.late, p.occurrence, p.due_at,
           p.wanted, p.fires, p.limit_key, p.overlap, p.waiting, p.tied, $6::bigint + row_number() OVER (ORDER BY p.job, p.at) - 1 AS id,
           CASE WHEN p.flow IS NOT NULL THEN ($10::bigint[])[p.nearest] + ($11::bigint[])[p.nearest] * p.place END
           AS rank
      FROM (SELECT f.*, row_number() OVER (PARTITION BY f.flow ORDER BY f.at, f.job) AS place
              FROM (SELECT o.*, o.wanted AND o.runs_left IS DISTINCT FROM 0 AS fires,
                           CASE WHEN o.runs_left IS DISTINCT FROM 0 AND ($7::int[])[o.nearest] = o.spec
                                THEN ($9::int[])[o.nearest] END AS flow
                      FROM (SELECT t.schedule, t.at, s.job, s.tenant, s.spec, s.closed, s.counted, s.payload,
                                   s.limit_key, s.overlap, its.waiting,
                                   CASE WHEN s.overlap IS NOT NULL OR ($12::int[])[width_bucket(s.spec, $12::int[])] = s.spec THEN true
                                        END AS tied,
                                   t.late_through IS NOT NULL AS late, its.wanted,
                                   CASE WHEN (s.exclusive OR s.overlap = 1) AND NOT its.waiting THEN '-infinity'
                                        ELSE t.at END
                                   AS occurrence,
                                   CASE WHEN its.waiting THEN place_in(t.at, s.phase, t.following) ELSE t.at END
                                   AS due_at,
                                   CASE WHEN its.wanted AND NOT its.waiting AND s.overlap IS NULL
                                        THEN width_bucket(s.spec, $7::int[]) END
                                   AS nearest,
                                   CASE WHEN s.counted
                                        THEN (SELECT runs_left FROM job WHERE job.id = s.job FOR NO KEY UPDATE) END
                                   AS runs_left
                              FROM target t
                              JOIN subscription s ON s.schedule = t.schedule AND s.job > t.done AND s.job <= t.upto
                                                 AND s.after < t.at AND s.until >= t.at AND s.head IS NULL
                             CROSS JOIN LATERAL (
                                    SELECT s.phase > 0 AND t.late_through IS NULL AS waiting,
                                           t.late_through IS NULL OR catches_up(
                                               s.catch_up, s.catch_up_window, s.until, t.at, t.opened_at, t.following,
                                               t.late_through) AS wanted) AS its
                            OFFSET 0) AS o) AS f) AS p
), made AS (
    INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, rank, tenant, spec, state, payload, limit_key, tied)
    SELECT id, job, 0, occurrence, at, due_at, coalesce(rank, 0), tenant, spec,
           CASE WHEN tied AND NOT waiting THEN 2 WHEN rank IS NOT NULL THEN 1 ELSE 0 END, payload, limit_key, tied
      FROM member
     WHERE fires AND NOT closed
     ORDER BY job
    ON CONFLICT (job, occurrence, origin) WHERE job IS NOT NULL DO NOTHING
    RETURNING id, spec, rank, state, tied
), queued AS (
    INSERT INTO ready (lane, rank, run)
    SELECT ($8::int[])[width_bucket(spec, $7::int[])], rank, id FROM made WHERE state = 1
), left_out AS MATERIALIZED (
    SELECT schedule, at, id, job, tenant, spec, closed, fires, overlap FROM member
     WHERE wanted AND (SELECT count(*) FROM made) < (SELECT count(*) FROM member WHERE wanted)
       AND id NOT IN (SELECT id FROM made)
), skipped AS (
    INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
    SELECT id, job, at, at, clock_timestamp(), tenant, spec, 0, 0, 8,
           CASE WHEN closed THEN 'the job was paused or cancelled'
                WHEN fires AND overlap IS NOT NULL THEN 'another run waits already'
                WHEN fires THEN 'the previous run was still going' ELSE 'the job has had all its runs' END
      FROM left_out
), spent AS (
    UPDATE job SET runs_left = greatest(job.runs_left - used.runs, 0)
      FROM (SELECT job, count(*) AS runs FROM member
             WHERE counted AND fires AND id NOT IN (SELECT id FROM left_out) GROUP BY 1) AS used
     WHERE job.id = used.job
    RETURNING job.id, job.runs_left
), ended AS (
    UPDATE subscription s SET until = CASE WHEN NOT m.late THEN m.at ELSE least(s.until, greatest(m.at,
                                           (SELECT c.cursor FROM schedule c WHERE c.id = m.schedule))) END
      FROM member m
     WHERE m.counted AND (m.job IN (SELECT id FROM spent WHERE runs_left = 0)) IS TRUE
       AND s.job = m.job AND s.schedule = m.schedule AND s.after < m.at AND s.until >= m.at
), done AS (
    SELECT schedule, at, max(reached) AS reached, bool_or(is_last) AS is_last, sum(fired) AS fired,
           sum(skipped) AS skipped, sum(passed_over) AS passed_over,
           bool_or(is_last AND is_plain) AND sum(fired + skipped) <= 1 AS told_elsewhere
      FROM (SELECT schedule, at, coalesce(upto, done) AS reached, is_last, done = 0 AND late_through IS NULL AS is_plain,
                   0 AS fired, 0 AS skipped, 0 AS passed_over
              FROM target
            UNION ALL
            SELECT schedule, at, NULL, NULL, NULL, count(*) FILTER (WHERE wanted), 0, count(*) FILTER (WHERE NOT wanted)
              FROM member GROUP BY schedule, at
            UNION ALL
            SELECT schedule, at, NULL, NULL, NULL, -1, 1, 0 FROM left_out) AS each
     GROUP BY schedule, at
), moved AS (
    UPDATE firing f SET done_through = d.reached, fired = f.fired + d.fired,
                        skipped = f.skipped + d.skipped, passed_over = f.passed_over + d.passed_over,
                        closed_at = CASE WHEN d.is_last THEN clock_timestamp() END
      FROM done d WHERE f.schedule = d.schedule AND f.at = d.at AND NOT d.told_elsewhere
), removed AS (
    -- Of one job the run or the skip says it all: a million schedules of one job each would write a row a fire.
    DELETE FROM firing f USING done d WHERE f.schedule = d.schedule AND f.at = d.at AND d.told_elsewhere
)
SELECT coalesce(sum(fired), 0)::int AS fired, coalesce(sum(skipped), 0)::int AS skipped,
       coalesce(sum(passed_over), 0)::int AS passed_over,
       (SELECT array_agg(id) FROM made WHERE tied AND state = 2) AS enter
  FROM done

-- :name rest_schedules
UPDATE schedule SET next_at = NULL
 WHERE id = ANY ($1::bigint[])
   AND NOT EXISTS (SELECT FROM subscription s WHERE s.schedule = schedule.id AND s.until > clock_timestamp())

-- :name next_fire
SELECT extract(epoch FROM next_at - clock_timestamp())::float8 AS seconds FROM schedule
 WHERE next_at >= CASE WHEN $2::timestamptz < statement_timestamp() THEN $2 ELSE '-infinity' END
   AND ($1::smallint[] IS NULL OR shard = ANY ($1)) ORDER BY next_at LIMIT 1
