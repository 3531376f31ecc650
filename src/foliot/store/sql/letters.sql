-- :name list_letters
SELECT l.id, l.job, l.spec_body, l.scheduled_at, l.died_at, l.attempt, l.error, l.error_class, l.target
  FROM letter l
 WHERE l.tenant = $1 AND l.id < $2
   AND is_meant($3::jsonb, l.job, l.error_class, l.error, l.died_at, l.queue, l.handler_group)
 ORDER BY l.id DESC LIMIT $4

-- :name find_letter
SELECT l.id, l.job, l.spec_body, l.scheduled_at, l.died_at, l.attempt, l.error, l.error_class, l.target, l.payload
  FROM letter l WHERE l.tenant = $1 AND l.id = $2

-- :name letters_to_rank
SELECT l.id, l.lane, l.tenant, l.priority, tenant.weight
  FROM letter l JOIN tenant ON tenant.id = l.tenant WHERE l.tenant = $1 AND l.id = ANY ($2::bigint[]) ORDER BY l.id

-- :name lock_letter_owners
-- Before lines and graphs, and in order, as whoever pauses a job does: `replay` asks for the gate when it holds those.
SELECT id FROM job WHERE id IN (SELECT job FROM dead_letter WHERE id = ANY ($1::bigint[])) ORDER BY id FOR KEY SHARE

-- :name replay
-- The same run goes on: it is ready, or blocked if its job is paused, with the fence it died with, so that the next claim
-- stands above all before. Its origin is its own, as that of a run by hand: overlap does not apply, and it takes nobody's
-- place. The row of history in which it died says how the run ended no longer (1: it went on), so that whoever asks finds
-- one end; it was written in the same moment, which bounds the leaves to look into.
-- Whoever died because workers did goes on as a suspect (deaths = 2): it runs alone (domain/suspicion.py).
-- Rows are locked in order, so that two who replay the same wait for each other: the second finds nothing. The job is
-- locked as in `conclude`, and was before. What is under a limit is blocked, and `enter` follows.
WITH held AS MATERIALIZED (
    SELECT d.id, x.rank, job.gate, d.attempt >= $6 AS is_worn_out, coalesce(job.gate IN (0, 1), d.job IS NULL) AS is_open,
           (SELECT true FROM spec JOIN tenant ON tenant.id = spec.tenant
             WHERE spec.id = d.spec AND (spec.concurrency IS NOT NULL OR tenant.concurrency IS NOT NULL
                                         OR EXISTS (SELECT FROM node WHERE node.run = d.id))) AS tied
      FROM unnest($2::bigint[], $3::bigint[]) AS x(id, rank)
      JOIN dead_letter d ON d.id = x.id AND d.tenant = $1 AND d.died_at <= $4::timestamptz
      LEFT JOIN LATERAL (SELECT gate FROM job WHERE job.id = d.job FOR KEY SHARE) AS job ON true
     ORDER BY d.id
       FOR UPDATE OF d
), back AS (
    DELETE FROM dead_letter d USING held WHERE d.id = held.id AND held.is_open AND NOT held.is_worn_out
    RETURNING d.*, CASE WHEN held.gate = 1 OR held.tied THEN 2 ELSE 1 END AS state, held.tied, held.gate,
              CASE WHEN held.gate = 1 OR held.tied THEN 0 ELSE held.rank END AS rank,
              CASE WHEN d.error_class IN ('quarantined', 'lost') THEN 2 ELSE 0 END AS suspicion
), made AS (
    INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, fence, rank, tenant, spec, attempt, deaths, forgiven,
                     state, target, payload, limit_key, tied)
    SELECT id, job, CASE WHEN job IS NOT NULL THEN id END, CASE WHEN job IS NOT NULL THEN scheduled_at END, scheduled_at,
           clock_timestamp(), fence, rank, tenant, spec, attempt, suspicion, attempt - suspicion, state, target, payload,
           limit_key, tied
      FROM back
), queued AS (
    INSERT INTO ready (lane, rank, run)
    SELECT spec.lane, back.rank, back.id FROM back JOIN spec ON spec.id = back.spec WHERE back.state = 1
), reopened AS (
    UPDATE history h SET state = 1 FROM back
     WHERE h.tenant = back.tenant AND h.run = back.id AND h.state = 5
       AND h.finished_at BETWEEN back.died_at - interval '1 minute' AND back.died_at + interval '1 minute'
), told AS (
    INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
    SELECT id, job, scheduled_at, due_at, clock_timestamp(), tenant, spec, attempt, 0, 1, $5 FROM back
)
SELECT id, is_open AND NOT is_worn_out AS done, is_worn_out,
       coalesce(tied, false) AND is_open AND NOT is_worn_out AND gate IS DISTINCT FROM 1 AS enters
  FROM held ORDER BY id

-- :name discard
-- Given up: what is left is the row of history that says so. As in `replay`, the run has one end.
WITH held AS MATERIALIZED (
    SELECT id FROM dead_letter
     WHERE tenant = $1 AND id = ANY ($2::bigint[]) AND died_at <= $3::timestamptz ORDER BY id FOR UPDATE
), gone AS (
    DELETE FROM dead_letter d USING held WHERE d.id = held.id RETURNING d.*
), reopened AS (
    UPDATE history h SET state = 1 FROM gone
     WHERE h.tenant = gone.tenant AND h.run = gone.id AND h.state = 5
       AND h.finished_at BETWEEN gone.died_at - interval '1 minute' AND gone.died_at + interval '1 minute'
), told AS (
    INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error, target,
                         error_class)
    SELECT id, job, scheduled_at, due_at, clock_timestamp(), tenant, spec, attempt, 0, 10, $4, target, error_class
      FROM gone
)
SELECT id FROM gone ORDER BY id

-- :name old_letters
SELECT tenant, array_agg(id ORDER BY id) AS ids
  FROM (SELECT tenant, id FROM dead_letter WHERE died_at < statement_timestamp() - $1::interval
         ORDER BY died_at LIMIT $2) AS old
 GROUP BY tenant ORDER BY tenant

-- :name letters_per_queue
SELECT lane.queue, coalesce(sum(counted.letters), 0)::bigint AS letters
  FROM lane
  LEFT JOIN (SELECT spec.lane, sum(per_spec.letters) AS letters
               FROM (SELECT spec, count(*) AS letters FROM dead_letter GROUP BY spec) AS per_spec
               JOIN spec ON spec.id = per_spec.spec GROUP BY spec.lane) AS counted ON counted.lane = lane.id
 GROUP BY lane.queue

-- :name count_letters
-- Of those that are meant and died until $3: how many, and how many cannot be replayed.
SELECT count(*)::int AS total, (count(*) FILTER (WHERE l.job IS NOT NULL AND job.gate IS DISTINCT FROM 0
                                                   AND job.gate IS DISTINCT FROM 1))::int AS refused
  FROM letter l LEFT JOIN job ON job.id = l.job
 WHERE l.tenant = $1 AND l.died_at <= $3::timestamptz
   AND is_meant($2::jsonb, l.job, l.error_class, l.error, l.died_at, l.queue, l.handler_group)

-- :name insert_sweep
INSERT INTO operation (id, tenant, kind, job, name, arguments, selection, per_second, concurrency, total, created_at)
VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7::jsonb, $8, $9, $10, $11)

-- :name hungry_sweeps
SELECT o.id, o.tenant, tenant.weight, o.kind, o.selection, o.created_at, o.done_through, o.per_second, o.paced_until,
       o.concurrency - o.live AS room, coalesce($2::timestamptz, clock_timestamp()) AS now
  FROM operation o JOIN tenant ON tenant.id = o.tenant
 WHERE o.id = ANY ($1::bigint[]) AND o.kind IN (2, 3) AND o.state IN (0, 1) AND o.concurrency > o.live AND o.left_over > 0
 ORDER BY o.id

-- :name next_letters
-- By id, from where the operation stands: what dies again comes back with the same id, behind it, and later than $3.
SELECT l.id, l.lane, l.tenant, l.priority, $6::int AS weight
  FROM letter l
 WHERE l.tenant = $1 AND l.id > $2 AND l.died_at <= $3::timestamptz
   AND is_meant($4::jsonb, l.job, l.error_class, l.error, l.died_at, l.queue, l.handler_group)
 ORDER BY l.id LIMIT $5

-- :name lock_sweep
-- None if another one serves it, or has served it since it was looked at: then it stands elsewhere.
SELECT id FROM operation WHERE id = $1 AND state IN (0, 1) AND done_through = $2 FOR NO KEY UPDATE SKIP LOCKED

-- :name move_sweep
-- `last`: there are no more of them, whatever the count was at the beginning; others may have taken some, and some may
-- have been about to die.
WITH noted AS (
    INSERT INTO operation_item (operation, run) SELECT $1::bigint, run FROM unnest($2::bigint[]) AS run
)
UPDATE operation o
   SET submitted = o.submitted + x.handed, succeeded = o.succeeded + x.succeeded,
       skipped = CASE WHEN x.last THEN greatest(o.total - o.submitted - x.handed, o.skipped + x.refused)
                      ELSE o.skipped + x.refused END,
       total = greatest(o.total, o.submitted + o.skipped + x.handed + x.refused),
       done_through = x.done_through, paced_until = x.paced_until, state = 1,
       started_at = coalesce(o.started_at, clock_timestamp())
  FROM (SELECT $3::int AS handed, $4::int AS succeeded, $5::int AS refused, $6::boolean AS last,
               $7::bigint AS done_through, $8::timestamptz AS paced_until) AS x
 WHERE o.id = $1::bigint
