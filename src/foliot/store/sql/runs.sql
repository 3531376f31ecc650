-- :name find_run
-- Live, waiting, or finished: the last row of a finished run tells how it ended.
SELECT r.id, r.job, r.spec_body, r.scheduled_at, r.due_at, r.started_at, NULL::timestamptz AS finished_at, r.attempt,
       r.state, NULL::text AS error, NULL::text AS error_class, r.target, r.payload,
       (SELECT worker FROM claim WHERE r.state = 3 AND r.id = ANY (claim.runs) AND r.fence < claim.id) AS worker
  FROM live_run r WHERE r.tenant = $1 AND r.id = $2
UNION ALL
SELECT t.id, t.job, spec.body, t.scheduled_at, t.due_at, NULL, NULL, 0::smallint, 0, NULL, NULL, t.target, t.payload, NULL
  FROM timer t JOIN spec ON spec.id = t.spec WHERE t.tenant = $1 AND t.id = $2
UNION ALL
(SELECT h.run, h.job, spec.body, h.scheduled_at, h.due_at, h.started_at, h.finished_at, h.attempt, h.state, h.error,
        h.error_class, h.target, d.payload, h.worker
   FROM history h JOIN spec ON spec.id = h.spec LEFT JOIN dead_letter d ON d.id = h.run
  WHERE h.tenant = $1 AND h.run = $2 AND h.state > 3 ORDER BY h.finished_at DESC LIMIT 1)
LIMIT 1

-- :name list_runs
-- Newest first. Each branch stops at the limit, so a page costs a page whatever lies behind it.
SELECT * FROM (
    (SELECT r.id, r.job, r.spec_body, r.scheduled_at, r.due_at, r.started_at, NULL::timestamptz AS finished_at,
            r.attempt, r.state, NULL::text AS error, NULL::text AS error_class, NULL::bigint AS worker, r.target
       FROM live_run r
      WHERE r.tenant = $1 AND r.id < $2 AND ($3::bigint IS NULL OR r.job = $3)
        AND ($4::int[] IS NULL OR r.state = ANY ($4))
      ORDER BY r.id DESC LIMIT $5)
    UNION ALL
    (SELECT t.id, t.job, spec.body, t.scheduled_at, t.due_at, NULL, NULL, 0::smallint, 0, NULL, NULL, NULL,
            t.target
       FROM timer t JOIN spec ON spec.id = t.spec
      WHERE t.tenant = $1 AND t.id < $2 AND ($3::bigint IS NULL OR t.job = $3)
        AND ($4::int[] IS NULL OR 0 = ANY ($4))
      ORDER BY t.id DESC LIMIT $5)
    UNION ALL
    (SELECT h.run, h.job, spec.body, h.scheduled_at, h.due_at, h.started_at, h.finished_at, h.attempt, h.state,
            h.error, h.error_class, h.worker, h.target
       FROM history h JOIN spec ON spec.id = h.spec
      WHERE h.tenant = $1 AND h.run < $2 AND ($3::bigint IS NULL OR h.job = $3) AND h.state > 3
        AND ($4::int[] IS NULL OR h.state = ANY ($4))
      ORDER BY h.run DESC LIMIT $5)
) AS everything ORDER BY id DESC LIMIT $5

-- :name list_attempts
-- Every try of a job (or of one run), newest first: those on record, and those under way. In order of their fence,
-- which rises with every try; the count of attempts does not when a worker hands a run back.
SELECT * FROM (
    (SELECT r.id AS run, r.job, (r.attempt + 1)::smallint AS attempt, -1 AS ending, r.scheduled_at, r.started_at,
            NULL::timestamptz AS finished_at, claim.worker, claim.id AS fence, NULL::text AS error, NULL::text AS error_class
       FROM live_run r JOIN claim ON r.id = ANY (claim.runs) AND r.fence < claim.id
      WHERE r.tenant = $1 AND r.state = 3 AND ($2::bigint IS NULL OR r.job = $2) AND ($3::bigint IS NULL OR r.id = $3)
        AND (r.id, claim.id) < ($4, $5))
    UNION ALL
    (SELECT h.run, h.job, h.attempt, h.ending, h.scheduled_at, h.started_at, h.finished_at, h.worker, h.fence, h.error,
            h.error_class
       FROM history h
      WHERE h.tenant = $1 AND h.ending <> 0 AND ($2::bigint IS NULL OR h.job = $2)
        AND ($3::bigint IS NULL OR h.run = $3) AND (h.run, h.fence) < ($4, $5)
      ORDER BY h.run DESC, h.fence DESC LIMIT $6)
) AS everything ORDER BY run DESC, fence DESC LIMIT $6
