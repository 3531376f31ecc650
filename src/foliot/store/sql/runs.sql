-- :name find_run
-- Live, waiting, or finished: the last row of a finished run tells how it ended. A run that is ready is shown as blocked
-- while its queue is paused or no live worker offers its handler. Of one that stands in a line: which, how many go at once
-- and how many do, and how many stand before it; counted no further than anybody wants to know. Whether it was asked to
-- stop comes from the same look: a little later it may have ended, and would be shown as running with nobody asking.
SELECT r.id, r.job, r.spec_body, r.scheduled_at, r.due_at, r.started_at, NULL::timestamptz AS finished_at, r.attempt,
       CASE WHEN idle.waits IS NULL THEN r.state ELSE 2 END AS state, NULL::text AS error,
       NULL::text AS error_class, r.target, r.payload,
       coalesce(outside.worker, (SELECT worker FROM claim
                                  WHERE r.state = 3 AND r.id = ANY (claim.runs) AND r.fence < claim.id)) AS worker,
       idle.waits, seat.line, slot.capacity,
       CASE WHEN seat.line IS NOT NULL
            THEN (SELECT count(*) FROM seat s WHERE s.slot = seat.slot AND s.state = 2)::int END AS going,
       CASE WHEN seat.line IS NOT NULL
            THEN (SELECT count(*) FROM (SELECT FROM seat s
                                         WHERE s.slot = seat.slot AND s.state = 1
                                           AND (s.priority, s.at, s.run) < (seat.priority, seat.at, seat.run)
                                         LIMIT $3) AS before)::int END AS ahead,
       outside.until, NULL::bytea AS result, (SELECT cancel_asked FROM run WHERE run.id = r.id) AS cancel_asked
  FROM live_run r JOIN spec ON spec.id = r.spec
  LEFT JOIN seat ON r.state = 2 AND seat.run = r.id AND seat.state BETWEEN 1 AND 1
  LEFT JOIN slot ON slot.id = seat.slot
  LEFT JOIN outside ON outside.run = r.id
 CROSS JOIN LATERAL (
        SELECT CASE WHEN r.state = 2 AND EXISTS (SELECT FROM node WHERE node.run = r.id AND node.state = 0) THEN 'parents'
                    WHEN r.state <> 1 THEN NULL
                    WHEN spec.lane IN (SELECT lane FROM paused_lane) THEN 'pause'
                    WHEN spec.lane NOT IN (SELECT lane FROM offered_lane) THEN 'worker' END AS waits) AS idle
 WHERE r.tenant = $1 AND r.id = $2
UNION ALL
SELECT t.id, t.job, spec.body, t.scheduled_at, t.due_at, NULL, NULL, 0::smallint, 0, NULL, NULL, t.target, t.payload,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM timer t JOIN spec ON spec.id = t.spec WHERE t.tenant = $1 AND t.id = $2
UNION ALL
SELECT o.id, NULL, o.body, o.due_at, o.due_at, NULL, NULL, 0::smallint, 0, NULL, NULL, o.target, o.payload, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM outbox o WHERE o.tenant = $1 AND o.id = $2 AND o.refused IS NULL
UNION ALL
(SELECT h.run, h.job, spec.body, h.scheduled_at, h.due_at, h.started_at, h.finished_at, h.attempt, h.state, h.error,
        h.error_class, h.target, d.payload, h.worker, NULL, NULL, NULL, NULL, NULL, NULL,
        h.result, NULL
   FROM history h JOIN spec ON spec.id = h.spec LEFT JOIN dead_letter d ON d.id = h.run
  WHERE h.tenant = $1 AND h.run = $2 AND h.state > 3 ORDER BY h.finished_at DESC LIMIT 1)
LIMIT 1

-- :name list_runs
-- Newest first. Each branch stops at the limit, so a page costs a page whatever lies behind it. Blocked as in `find_run`;
-- OFFSET 0, so that the state, which takes a look into `ready`, is found out once per run. History finds its specs from the
-- left: the server guesses that a tenant has few, and would rather sort all runs than walk until enough of them match.
SELECT * FROM (
    (SELECT r.id, r.job, r.spec_body, r.scheduled_at, r.due_at, r.started_at, NULL::timestamptz AS finished_at,
            r.attempt, CASE WHEN idle.waits IS NULL THEN r.state ELSE 2 END AS state, NULL::text AS error,
            NULL::text AS error_class, NULL::bigint AS worker, r.target, idle.waits,
            seat.line, slot.capacity, (SELECT cancel_asked FROM run WHERE run.id = r.id) AS cancel_asked
       FROM (SELECT live_run.*, spec.lane FROM live_run JOIN spec ON spec.id = live_run.spec
              WHERE live_run.tenant = $1 AND live_run.id < $2 AND ($3::bigint IS NULL OR live_run.job = $3)
                AND live_run.id >= $6::bigint AND ($7::text IS NULL OR is_about($7, spec.lane, live_run.target, NULL))
              ORDER BY live_run.id DESC OFFSET 0) AS r
      CROSS JOIN LATERAL (
             SELECT CASE WHEN r.state = 2 AND EXISTS (SELECT FROM node WHERE node.run = r.id AND node.state = 0)
                         THEN 'parents'
                         WHEN r.state <> 1 THEN NULL
                         WHEN r.lane IN (SELECT lane FROM paused_lane) THEN 'pause'
                         WHEN r.lane NOT IN (SELECT lane FROM offered_lane) THEN 'worker' END AS waits) AS idle
       LEFT JOIN seat ON r.state = 2 AND seat.run = r.id AND seat.state BETWEEN 1 AND 1
       LEFT JOIN slot ON slot.id = seat.slot
      WHERE $4::int[] IS NULL OR CASE WHEN idle.waits IS NULL THEN r.state ELSE 2 END = ANY ($4)
      ORDER BY r.id DESC LIMIT $5)
    UNION ALL
    (SELECT t.id, t.job, spec.body, t.scheduled_at, t.due_at, NULL, NULL, 0::smallint, 0, NULL, NULL, NULL,
            t.target, NULL, NULL, NULL, NULL
       FROM timer t JOIN spec ON spec.id = t.spec
      WHERE t.tenant = $1 AND t.id < $2 AND ($3::bigint IS NULL OR t.job = $3)
        AND t.id >= $6 AND ($7 IS NULL OR is_about($7, spec.lane, t.target, NULL))
        AND ($4::int[] IS NULL OR 0 = ANY ($4))
      ORDER BY t.id DESC LIMIT $5)
    UNION ALL
    (SELECT h.run, h.job, spec.body, h.scheduled_at, h.due_at, h.started_at, h.finished_at, h.attempt, h.state,
            h.error, h.error_class, h.worker, h.target, NULL, NULL, NULL, NULL
       FROM history h LEFT JOIN spec ON spec.id = h.spec
      WHERE h.tenant = $1 AND h.run < $2 AND ($3::bigint IS NULL OR h.job = $3) AND h.state > 3
        AND ($4::int[] IS NULL OR h.state = ANY ($4))
        AND h.run >= $6 AND ($7 IS NULL OR is_about($7, spec.lane, h.target, h.error))
      ORDER BY h.run DESC LIMIT $5)
) AS everything ORDER BY id DESC LIMIT $5

-- :name list_attempts
-- Every try of a job (or of one run), newest first: those on record, and those under way. In order of their fence,
-- which rises with every try; the count of attempts does not when a worker hands a run back. A late result without a
-- lost attempt is one of which the reaper did not know that it had begun.
SELECT * FROM (
    (SELECT r.id AS run, r.job, (r.attempt + 1)::smallint AS attempt, -1 AS ending, r.scheduled_at, r.started_at,
            NULL::timestamptz AS finished_at, claim.worker, claim.id AS fence, NULL::text AS error,
            NULL::text AS error_class, NULL::smallint AS late_ending, NULL::text AS late_error, NULL::timestamptz AS late_at
       FROM live_run r JOIN claim ON r.id = ANY (claim.runs) AND r.fence < claim.id
      WHERE r.tenant = $1 AND r.state = 3 AND ($2::bigint IS NULL OR r.job = $2) AND ($3::bigint IS NULL OR r.id = $3)
        AND (r.id, claim.id) < ($4, $5))
    UNION ALL
    (SELECT r.id, r.job, (r.attempt + 1)::smallint, -1, r.scheduled_at, o.started_at, NULL, o.worker, o.fence, NULL, NULL,
            NULL, NULL, NULL
       FROM outside o JOIN run r ON r.id = o.run
      WHERE r.tenant = $1 AND ($2::bigint IS NULL OR r.job = $2) AND ($3::bigint IS NULL OR o.run = $3)
        AND (o.run, o.fence) < ($4, $5)
      ORDER BY o.run DESC LIMIT $6)
    UNION ALL
    (SELECT h.run, h.job, h.attempt, h.ending, h.scheduled_at, h.started_at, h.finished_at, h.worker, h.fence, h.error,
            h.error_class, late.ending, late.error, late.recorded_at
       FROM history h LEFT JOIN late_result late ON late.run = h.run AND late.fence = h.fence
      WHERE h.tenant = $1 AND h.ending <> 0 AND ($2::bigint IS NULL OR h.job = $2)
        AND ($3::bigint IS NULL OR h.run = $3) AND (h.run, h.fence) < ($4, $5)
      ORDER BY h.run DESC, h.fence DESC LIMIT $6)
    UNION ALL
    (SELECT l.run, l.job, l.attempt, 5, l.scheduled_at, l.started_at, l.recorded_at, l.worker, l.fence, NULL, NULL,
            l.ending, l.error, l.recorded_at
       FROM late_result l
      WHERE l.tenant = $1 AND ($2::bigint IS NULL OR l.job = $2) AND ($3::bigint IS NULL OR l.run = $3)
        AND (l.run, l.fence) < ($4, $5)
        AND NOT EXISTS (SELECT FROM history h WHERE h.tenant = l.tenant AND h.run = l.run AND h.fence = l.fence)
      ORDER BY l.run DESC, l.fence DESC LIMIT $6)
) AS everything ORDER BY run DESC, fence DESC LIMIT $6
