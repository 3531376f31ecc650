-- :name find_operation
SELECT o.*, job.gate, clock_timestamp() AS now FROM operation o LEFT JOIN job ON job.id = o.job
 WHERE o.tenant = $1 AND o.id = $2

-- :name list_operations
SELECT o.*, job.gate, clock_timestamp() AS now FROM operation o LEFT JOIN job ON job.id = o.job
 WHERE o.tenant = $1 AND o.id < $2 AND ($3::smallint IS NULL OR o.state = $3) AND ($4::bigint IS NULL OR o.job = $4)
 ORDER BY o.id DESC LIMIT $5

-- :name lock_job_to_fill
-- Keeps edits and other back-fills of the job away, but not those who make its runs ready.
SELECT kind, gate, version, clock_timestamp() AS now FROM job WHERE tenant = $1 AND id = $2 FOR NO KEY UPDATE

-- :name overlapping_operation
SELECT id FROM operation WHERE job = $1 AND finished_at IS NULL AND since <= $3 AND until >= $2 ORDER BY id LIMIT 1

-- :name instants_to_come
-- What the job's own schedule has yet to fire: everything after the cursor, and firings that have not come to this job.
-- One statement, because the cursor moves and the firing opens in one.
SELECT NULL::timestamptz AS at, greatest(s.after, c.cursor) AS after, least(s.until, $2) AS until
  FROM subscription s JOIN schedule c ON c.id = s.schedule
 WHERE s.job = $1 AND s.until > c.cursor
UNION ALL
SELECT f.at, NULL, NULL
  FROM subscription s
  JOIN firing f ON f.schedule = s.schedule AND f.closed_at IS NULL AND f.done_through < s.job
               AND f.at > s.after AND f.at <= s.until
 WHERE s.job = $1

-- :name instants_under_way
SELECT DISTINCT scheduled_at FROM run WHERE job = $1 AND scheduled_at BETWEEN $2 AND $3

-- :name instants_ended
-- How the last run of each instant ended. Ids carry time, and no run is made before its instant: what is older than $4
-- need not be read. A day is taken off for clocks that were set back.
SELECT DISTINCT ON (scheduled_at) scheduled_at, state FROM history
 WHERE job = $1 AND run >= $4 AND scheduled_at BETWEEN $2 AND $3 AND state > 3
 ORDER BY scheduled_at, run DESC, finished_at DESC

-- :name insert_operation
INSERT INTO operation (id, tenant, kind, job, name, arguments, since, until, newest_first, concurrency, total, skipped)
VALUES ($1, $2, 1, $3, $4, $5::jsonb, $6, $7, $8, $9, $10, $11)

-- :name insert_items
INSERT INTO operation_item (operation, at) SELECT $1, at FROM unnest($2::timestamptz[]) AS at

-- :name lock_operation
SELECT id, kind, job, state, finished_at IS NOT NULL AS is_over FROM operation WHERE tenant = $1 AND id = $2
   FOR NO KEY UPDATE

-- :name lock_unfinished
-- Any number may serve operations: what another one has locked is in good hands.
SELECT id FROM operation WHERE finished_at IS NULL AND id > $1 ORDER BY id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED

-- :name lock_to_feed
SELECT id, job FROM operation WHERE id = ANY ($1::bigint[]) AND state IN (0, 1) ORDER BY id
   FOR NO KEY UPDATE SKIP LOCKED

-- :name are_unfinished
SELECT EXISTS (SELECT FROM operation WHERE finished_at IS NULL)

-- :name note_ended
-- A run that has left `run` has its ending in history, written by the same statement, so that one snapshot sees either.
-- One that has neither was there so long ago that its history is gone (7, unknown). Its beginning bounds the leaves of
-- history to look into, less a day for clocks that were set back. LIMIT 1, here and in `feed`, keeps the planner from
-- turning a look at an index into a join with the whole table; items are found again by their place for the same reason.
WITH gone AS MATERIALIZED (
    SELECT i.ctid AS place, i.run, o.tenant, o.created_at
      FROM operation o JOIN operation_item i ON i.operation = o.id AND i.run IS NOT NULL AND i.state IS NULL
     WHERE o.id = ANY ($1::bigint[]) AND (SELECT run.id FROM run WHERE run.id = i.run LIMIT 1) IS NULL
), noted AS (
    UPDATE operation_item i SET state = coalesce(
           (SELECT h.state FROM history h
             WHERE h.tenant = gone.tenant AND h.run = gone.run AND h.state > 3
               AND h.finished_at > gone.created_at - interval '1 day'
             ORDER BY h.finished_at DESC LIMIT 1), 7)
      FROM gone WHERE i.ctid = gone.place
    RETURNING i.operation, i.state
), counted AS (
    SELECT operation, count(*) AS ended, count(*) FILTER (WHERE state = 4) AS succeeded,
           count(*) FILTER (WHERE state = 6) AS cancelled
      FROM noted GROUP BY operation
), moved AS (
    UPDATE operation o SET succeeded = o.succeeded + c.succeeded, cancelled = o.cancelled + c.cancelled,
                           failed = o.failed + c.ended - c.succeeded - c.cancelled
      FROM counted c WHERE o.id = c.operation
)
SELECT coalesce(sum(ended), 0)::int AS ended FROM counted

-- :name stop_orphans
-- A job that is over takes its back-fills along.
UPDATE operation o SET state = 3, reason = 'the job was cancelled'
 WHERE o.id = ANY ($1::bigint[]) AND o.kind = 1 AND o.state IN (0, 1)
   AND NOT EXISTS (SELECT FROM job WHERE job.id = o.job AND job.gate <> 2)

-- :name finish_operations
UPDATE operation SET finished_at = clock_timestamp(),
                     state = CASE WHEN state = 3 THEN 3 WHEN succeeded + skipped = total THEN 2 ELSE 4 END
 WHERE id = ANY ($1::bigint[]) AND finished_at IS NULL AND live = 0 AND (state = 3 OR left_over = 0)
RETURNING id

-- :name hungry_backfills
-- How many runs each could take now, and the flow they would be in. Looked at again under the lock.
SELECT o.id, spec.lane, o.tenant, tenant.weight, least(o.concurrency - o.live, o.left_over) AS room
  FROM operation o
  JOIN job ON job.id = o.job AND job.gate = 0
  JOIN spec ON spec.id = job.spec
  JOIN tenant ON tenant.id = o.tenant
 WHERE o.id = ANY ($1::bigint[]) AND o.kind = 1 AND o.state IN (0, 1) AND o.concurrency > o.live AND o.left_over > 0
 ORDER BY o.id

-- :name feed
-- Hands out the next runs of these operations, which are locked, as their jobs are. An instant that is queued or running
-- for another reason is not made again: its occurrence is the instant, or -infinity for an exclusive job. The spec and
-- the payload are the job's own of now. A run that nobody reserved a rank for (its job has moved to another lane) is
-- left to promote, which ranks it. `IN` where a column is made is looked up in a hash, also where hash joins are off.
-- Runs under a limit are blocked, and `enter` follows.
WITH picked AS MATERIALIZED (
    SELECT o.id AS operation, o.tenant, o.job, next.place AS item, next.at, job.spec, job.payload, spec.lane, job.limit_key,
           CASE WHEN spec.concurrency IS NOT NULL OR tenant.concurrency IS NOT NULL THEN true END AS tied,
           $3::bigint + row_number() OVER (ORDER BY o.id, next.turn) - 1 AS id,
           row_number() OVER (PARTITION BY spec.lane, o.tenant ORDER BY o.id, next.turn) AS place
      FROM unnest($1::bigint[], $2::int[]) AS x(operation, room)
      JOIN operation o ON o.id = x.operation
      JOIN job ON job.id = o.job
      JOIN spec ON spec.id = job.spec
      JOIN tenant ON tenant.id = o.tenant
     CROSS JOIN LATERAL (
            SELECT place, at, row_number() OVER () AS turn FROM (
                (SELECT i.ctid AS place, i.at FROM operation_item i
                  WHERE i.operation = o.id AND i.run IS NULL AND i.state IS NULL AND NOT o.newest_first
                  ORDER BY i.at LIMIT least(x.room, o.concurrency - o.live))
                UNION ALL
                (SELECT i.ctid, i.at FROM operation_item i
                  WHERE i.operation = o.id AND i.run IS NULL AND i.state IS NULL AND o.newest_first
                  ORDER BY i.at DESC LIMIT least(x.room, o.concurrency - o.live))) AS either) AS next
), made AS (
    INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, rank, tenant, spec, state, payload, limit_key, tied)
    SELECT p.id, p.job, p.operation, p.at, p.at, statement_timestamp(),
           CASE WHEN p.tied THEN 0 ELSE coalesce(flow.base + flow.step * p.place, 0) END,
           p.tenant, p.spec, CASE WHEN p.tied THEN 2 ELSE (flow.base IS NOT NULL)::int END, p.payload, p.limit_key, p.tied
      FROM picked p
      LEFT JOIN unnest($4::int[], $5::int[], $6::bigint[], $7::bigint[], $8::int[])
           AS flow(lane, tenant, base, step, reserved)
        ON flow.lane = p.lane AND flow.tenant = p.tenant AND p.place <= flow.reserved
     WHERE (SELECT r.id FROM run r WHERE r.job = p.job AND r.occurrence = p.at LIMIT 1) IS NULL
       AND (SELECT r.id FROM run r WHERE r.job = p.job AND r.occurrence = '-infinity' AND r.scheduled_at = p.at
             LIMIT 1) IS NULL
     ORDER BY p.id
    ON CONFLICT (job, occurrence, origin) WHERE job IS NOT NULL DO NOTHING
    RETURNING id, rank, state, spec, tied
), queued AS (
    INSERT INTO ready (lane, rank, run)
    SELECT spec.lane, made.rank, made.id FROM made JOIN spec ON spec.id = made.spec WHERE made.state = 1
), told AS MATERIALIZED (
    SELECT p.operation, p.item, p.id, p.id IN (SELECT made.id FROM made) AS is_made FROM picked p
), marked AS (
    UPDATE operation_item i SET run = CASE WHEN told.is_made THEN told.id END,
                                state = CASE WHEN NOT told.is_made THEN 8 END
      FROM told WHERE i.ctid = told.item
), counted AS (
    SELECT operation, count(*) FILTER (WHERE is_made) AS made, count(*) FILTER (WHERE NOT is_made) AS skipped
      FROM told GROUP BY operation
), moved AS (
    UPDATE operation o SET submitted = o.submitted + c.made, skipped = o.skipped + c.skipped, state = 1,
                           started_at = coalesce(o.started_at, clock_timestamp())
      FROM counted c WHERE o.id = c.operation
)
SELECT coalesce(sum(made), 0)::int AS made, coalesce(sum(skipped), 0)::int AS skipped,
       ARRAY(SELECT id FROM made WHERE tied) AS enter
  FROM counted

-- :name cancel_operation
UPDATE operation SET state = 3 WHERE id = $1

-- :name with_waiting_runs
-- Cancelled back-fills of which runs wait that no worker holds: a retry may have come back since. What was replayed goes
-- on: it was there before the operation was.
SELECT DISTINCT o.id, o.job
  FROM operation o
  JOIN operation_item i ON i.operation = o.id AND i.run IS NOT NULL AND i.state IS NULL
  JOIN live_run r ON r.id = i.run AND r.state <> 3
 WHERE o.id = ANY ($1::bigint[]) AND o.kind = 1 AND o.state = 3

-- :name hold_jobs
-- Whoever makes a run ready (promote, conclude, reap) locks its job first: while this is held, none slips by.
SELECT id FROM job WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE

-- :name hold_free_jobs
-- As above; one that is being used or edited comes next time, so that nobody waits for it.
SELECT id FROM job WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED

-- :name hold_open_and_free
-- As `hold_open`, and one that is being edited comes next time: back-fills of other jobs must not wait for it.
SELECT id FROM job WHERE id = ANY ($1::bigint[]) AND gate = 0 ORDER BY id FOR KEY SHARE SKIP LOCKED

-- :name tied_of_operations
SELECT ARRAY(SELECT run.id FROM operation_item i JOIN run ON run.id = i.run AND run.tied
              WHERE i.operation = ANY ($1::bigint[]) AND i.run IS NOT NULL AND i.state IS NULL)

-- :name cancel_waiting_runs
-- As `cancel_runs`, for the runs of these operations: what a worker holds goes on.
WITH mine AS MATERIALIZED (
    SELECT run.id, run.rank, spec.lane
      FROM operation_item i JOIN run ON run.id = i.run JOIN spec ON spec.id = run.spec
     WHERE i.operation = ANY ($1::bigint[]) AND i.run IS NOT NULL AND i.state IS NULL
), popped AS (
    DELETE FROM ready USING mine WHERE ready.lane = mine.lane AND ready.rank = mine.rank AND ready.run = mine.id
    RETURNING ready.run
), gone AS (
    DELETE FROM run USING mine
     WHERE run.id = mine.id AND (run.state IN (0, 2) OR run.id IN (SELECT popped.run FROM popped))
    RETURNING run.id, run.job, run.scheduled_at, run.due_at, run.tenant, run.spec, run.attempt
)
INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
SELECT id, job, scheduled_at, due_at, clock_timestamp(), tenant, spec, attempt, 0, 6, 'the back-fill was cancelled'
  FROM gone

-- :name remove_old_operations
-- A few at a time: each may have 100,000 items.
WITH old AS (
    DELETE FROM operation WHERE id IN (
        SELECT id FROM operation WHERE finished_at < statement_timestamp() - interval '30 days'
         ORDER BY finished_at LIMIT 10)
    RETURNING id
)
DELETE FROM operation_item i USING old WHERE i.operation = old.id
