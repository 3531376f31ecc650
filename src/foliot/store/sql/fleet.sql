-- :name register_worker
INSERT INTO worker (id, name) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING

-- :name beat
-- Death is a state that no heartbeat undoes.
UPDATE worker SET seen_at = clock_timestamp() WHERE id = $1 AND state IN (0, 1) RETURNING id

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

-- :name reap
-- Claims of dead or unknown workers, whenever they appear: a claim that commits after its worker was buried is found
-- by the next pass. Runs that had started (started_at) count a lost attempt and a death; the rest go back untouched.
-- fence = the reaped claim, so that a late settle of it finds nothing. Runs of a job that was paused meanwhile come back
-- blocked, those of a cancelled one end; the job is locked, as in `conclude`.
WITH orphan AS MATERIALIZED (
    SELECT claim.id, claim.worker, claim.runs FROM claim
     WHERE NOT EXISTS (SELECT FROM worker WHERE worker.id = claim.worker AND worker.state IN (0, 1))
     ORDER BY claim.id LIMIT 10 FOR UPDATE OF claim SKIP LOCKED
), ours AS MATERIALIZED (
    SELECT run.*, orphan.id AS claim, orphan.worker, (run.started_at IS NOT NULL)::int AS began,
           (SELECT job.gate FROM job WHERE job.id = run.job FOR KEY SHARE) AS gate
      FROM orphan CROSS JOIN LATERAL unnest(orphan.runs) AS held(run)
      JOIN run ON run.id = held.run AND run.fence < orphan.id
     ORDER BY run.id
       FOR UPDATE OF run
), covered AS MATERIALIZED (
    SELECT *, CASE WHEN began = 1 AND deaths + 1 >= $1 THEN 5 WHEN gate = 2 THEN 6 WHEN gate = 1 THEN 2 ELSE 1 END
              AS next_state
      FROM ours
), kept AS (
    UPDATE run SET fence = covered.claim, state = covered.next_state, started_at = NULL,
                   attempt = run.attempt + covered.began, deaths = run.deaths + covered.began, rank = lane.v + 1
      FROM covered JOIN spec ON spec.id = covered.spec JOIN lane ON lane.id = spec.lane
     WHERE run.id = covered.id AND covered.next_state IN (1, 2)
    RETURNING run.id, run.state, run.rank, lane.id AS lane
), returned AS (
    INSERT INTO ready (lane, rank, run) SELECT lane, rank, id FROM kept WHERE state = 1 RETURNING 1
), dead AS (
    INSERT INTO dead_letter (id, job, origin, scheduled_at, due_at, died_at, fence, tenant, spec, attempt, error,
                             target, payload, error_class)
    SELECT id, job, origin, scheduled_at, due_at, clock_timestamp(), claim, tenant, spec, attempt + 1,
           'its worker died ' || deaths + 1 || ' times while running it', target, payload, 'lost'
      FROM covered WHERE next_state = 5
    RETURNING 1
), gone AS (
    DELETE FROM run USING covered WHERE run.id = covered.id AND covered.next_state IN (5, 6)
), written AS (
    INSERT INTO history (run, job, scheduled_at, due_at, started_at, finished_at, worker, fence, tenant, spec, attempt,
                         ending, state, error, target, error_class)
    SELECT id, job, scheduled_at, due_at, started_at, clock_timestamp(), worker, claim, tenant, spec, attempt + began,
           CASE WHEN began = 1 THEN 5 ELSE 0 END, next_state,
           CASE WHEN began = 1 THEN 'the worker died while running this attempt' ELSE 'the job was cancelled' END,
           target, CASE WHEN began = 1 THEN 'lost' END
      FROM covered WHERE began = 1 OR next_state = 6
), forgotten AS (
    DELETE FROM claim USING orphan WHERE claim.id = orphan.id RETURNING 1
)
SELECT (SELECT count(*) FROM forgotten) AS claims, (SELECT count(*) FROM returned) AS returned,
       (SELECT count(*) FROM dead) AS dead
