-- :name register_worker
INSERT INTO worker (id, name, lanes, host, pid, version, app, concurrency)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO NOTHING

-- :name beat
-- Death is a state that no heartbeat undoes. The answer says what else the worker must know: whether somebody drains it,
-- which of its lanes are paused, and which of its runs are to stop or to be handed back.
-- Who tells of other lanes than those on record, because the reply to `widen` was lost, keeps what it told before.
UPDATE worker SET seen_at = clock_timestamp(),
                  running = CASE WHEN cardinality($2::int[]) IN (0, cardinality(lanes)) THEN $2 ELSE running END,
                  rate = CASE WHEN cardinality($3::real[]) IN (0, cardinality(lanes)) THEN $3 ELSE rate END
 WHERE id = $1 AND state IN (0, 1)
RETURNING state, ARRAY(SELECT lane FROM paused_lane WHERE lane = ANY (worker.lanes)) AS paused,
          ARRAY(SELECT run.id FROM run WHERE run.recall = worker.id AND run.cancel_asked IS NOT NULL) AS stop,
          ARRAY(SELECT run.id FROM run WHERE run.recall = worker.id AND run.cancel_asked IS NULL) AS recalled

-- :name widen
-- A worker that carries labels serves, besides what it was registered with, the lanes of its queues and handlers that
-- require some of its labels, as they come to be: $2 lanes at most. All that it serves, in the order on record.
WITH its AS MATERIALIZED (
    SELECT worker.id, worker.lanes, array_agg(DISTINCT lane.queue) AS queues,
           array_agg(DISTINCT lane.handler_group) AS groups,
           string_to_array(string_agg(lane.labels, ',') FILTER (WHERE lane.labels <> ''), ',') AS labels
      FROM worker JOIN lane ON lane.id = ANY (worker.lanes)
     WHERE worker.id = $1 AND worker.state IN (0, 1)
     GROUP BY worker.id
), wider AS MATERIALIZED (
    SELECT its.id, its.lanes || ARRAY(
               SELECT lane.id FROM lane
                WHERE lane.queue = ANY (its.queues) AND lane.handler_group = ANY (its.groups)
                  AND lane.labels <> '' AND string_to_array(lane.labels, ',') <@ its.labels AND lane.id <> ALL (its.lanes)
                ORDER BY lane.id LIMIT greatest($2 - cardinality(its.lanes), 0)) AS lanes
      FROM its
), noted AS (
    UPDATE worker SET lanes = wider.lanes, running = '{}', rate = '{}'
      FROM wider WHERE worker.id = wider.id AND cardinality(worker.lanes) < cardinality(wider.lanes)
)
SELECT lane.id, lane.queue
  FROM wider CROSS JOIN LATERAL unnest(wider.lanes) WITH ORDINALITY AS served(lane, place)
  JOIN lane ON lane.id = served.lane
 ORDER BY served.place

-- :name leave
UPDATE worker SET state = 2 WHERE id = $1

-- :name uptime
SELECT clock_timestamp() - pg_postmaster_start_time()

-- :name bury
-- The update looks at the row again after it has the lock: a heartbeat that came first keeps the worker alive. One from
-- the future is as good as none: the clock was set back since, and whoever lives has had a lease to beat again.
UPDATE worker SET state = 2
 WHERE state IN (0, 1) AND (seen_at < clock_timestamp() - $1::interval OR seen_at > clock_timestamp() + $1::interval)
RETURNING id

-- :name standing_claims
-- The oldest claims, and the last number that was given out. This walks over all claims that ended since the last vacuum,
-- or for as long as somebody has held a transaction open.
SELECT ARRAY(SELECT id FROM claim ORDER BY id LIMIT $1) AS oldest, (SELECT last_value FROM fence) AS last

-- :name orphans
-- Claims of dead or unknown workers, and which of their runs are tied: of those that stood when somebody looked last ($1),
-- and of all above ($2). In between nothing is left but what has ended.
SELECT claim.id, ARRAY(SELECT run.id FROM unnest(claim.runs) AS held(run) JOIN run ON run.id = held.run AND run.tied) AS tied
  FROM ((SELECT id, runs FROM claim
          WHERE id = ANY ($1::bigint[])
            AND NOT EXISTS (SELECT FROM worker WHERE worker.id = claim.worker AND worker.state IN (0, 1))
          ORDER BY id LIMIT 10)
        UNION ALL
        (SELECT id, runs FROM claim
          WHERE id > $2::bigint
            AND NOT EXISTS (SELECT FROM worker WHERE worker.id = claim.worker AND worker.state IN (0, 1))
          ORDER BY id LIMIT 10)) AS claim
 ORDER BY claim.id LIMIT 10

-- :name reap
-- Claims of dead or unknown workers, whenever they appear: a claim that commits after its worker was buried is found
-- by the next pass. Runs that had started (started_at) count a lost attempt and a death; the rest spend nothing, but are
-- marked (deaths = -1): one of them may have killed the worker before it could be noted (domain/suspicion.py). An
-- at-most-once run that had started is not run again: how it ended is unknown.
-- fence = the reaped claim, so that a late settle of it finds nothing. Runs of a job that was paused meanwhile come back
-- blocked, those of a cancelled one end, and so does whatever was asked to stop; the job is locked, as in `conclude`.
-- $3: the tied runs whose lines are locked.
WITH orphan AS MATERIALIZED (
    SELECT claim.id, claim.worker, claim.runs FROM claim
     WHERE NOT EXISTS (SELECT FROM worker WHERE worker.id = claim.worker AND worker.state IN (0, 1))
       AND claim.id = ANY ($2::bigint[])
       AND NOT EXISTS (SELECT FROM unnest(claim.runs) AS held(run) JOIN run ON run.id = held.run AND run.tied
                        WHERE run.id <> ALL ($3::bigint[]))
     ORDER BY claim.id FOR UPDATE OF claim SKIP LOCKED
), ours AS MATERIALIZED (
    SELECT run.*, orphan.id AS claim, orphan.worker, (run.started_at IS NOT NULL)::int AS began,
           (SELECT job.gate FROM job WHERE job.id = run.job FOR KEY SHARE) AS gate,
           (SELECT spec.at_most_once FROM spec WHERE spec.id = run.spec) AS once
      FROM orphan CROSS JOIN LATERAL unnest(orphan.runs) AS held(run)
      JOIN run ON run.id = held.run AND run.fence < orphan.id
     ORDER BY run.id
       FOR UPDATE OF run
), covered AS MATERIALIZED (
    SELECT *, CASE WHEN began = 1 AND once THEN 7 WHEN cancel_asked IS NOT NULL THEN 6
                   WHEN began = 1 AND greatest(deaths, 0) + 1 >= $1 THEN 5 WHEN gate = 2 THEN 6 WHEN gate = 1 THEN 2 ELSE 1 END
              AS next_state
      FROM ours
), kept AS (
    UPDATE run SET fence = covered.claim, state = covered.next_state, started_at = NULL, recall = NULL,
                   attempt = run.attempt + covered.began, rank = lane.v + 1,
                   deaths = CASE WHEN covered.began = 1 THEN greatest(run.deaths, 0) + 1
                                 WHEN run.deaths = 0 THEN -1 ELSE run.deaths END
      FROM covered JOIN spec ON spec.id = covered.spec JOIN lane ON lane.id = spec.lane
     WHERE run.id = covered.id AND covered.next_state IN (1, 2)
    RETURNING run.id, run.state, run.rank, lane.id AS lane
), returned AS (
    INSERT INTO ready (lane, rank, run) SELECT lane, rank, id FROM kept WHERE state = 1 RETURNING 1
), dead AS (
    INSERT INTO dead_letter (id, job, origin, scheduled_at, due_at, died_at, fence, tenant, spec, attempt, error,
                             target, payload, error_class, limit_key)
    SELECT id, job, origin, scheduled_at, due_at, clock_timestamp(), claim, tenant, spec, attempt + 1,
           'its worker died ' || greatest(deaths, 0) + 1 || ' times while running it', target, payload, 'lost', limit_key
      FROM covered WHERE next_state = 5
    RETURNING 1
), gone AS (
    DELETE FROM run USING covered WHERE run.id = covered.id AND covered.next_state IN (5, 6, 7)
), written AS (
    INSERT INTO history (run, job, scheduled_at, due_at, started_at, finished_at, worker, fence, tenant, spec, attempt,
                         ending, state, error, target, error_class)
    SELECT id, job, scheduled_at, due_at, started_at, clock_timestamp(), worker, claim, tenant, spec, attempt + began,
           CASE WHEN next_state = 7 THEN 6 WHEN began = 1 THEN 5 ELSE 0 END, next_state,
           CASE WHEN next_state = 7 THEN 'the worker was lost while running it: delivered at most once, it is not run again'
                WHEN began = 1 THEN 'the worker died while running this attempt'
                WHEN gate = 2 THEN 'the job was cancelled' ELSE 'cancelled on request' END,
           target, CASE WHEN began = 1 THEN 'lost' END
      FROM covered WHERE began = 1 OR next_state = 6
), forgotten AS (
    DELETE FROM claim USING orphan WHERE claim.id = orphan.id RETURNING 1
)
SELECT (SELECT count(*) FROM forgotten) AS claims, (SELECT count(*) FROM returned) AS returned,
       (SELECT count(*) FROM dead) AS dead, (SELECT count(*) FROM covered WHERE next_state = 7) AS unknown
