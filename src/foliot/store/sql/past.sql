-- :name list_versions
-- The present definition, then those before it. It began when the one before it ended.
SELECT v.version, v.name, (SELECT key FROM job WHERE id = $2) AS key, v.kind, v.exclusive, v.overlap, v.timing, v.labels,
       v.payload, spec.body AS spec_body, v.parents, v.conditions, v.until,
       coalesce((SELECT max(before.until) FROM job_version before WHERE before.job = $2 AND before.version < v.version),
                (SELECT created_at FROM job WHERE id = $2)) AS since
  FROM (SELECT version, name, spec, kind, exclusive, overlap, timing, labels, payload, parents, conditions, until
          FROM job_version WHERE tenant = $1 AND job = $2 AND version < $3
        UNION ALL
        SELECT version, name, spec, kind, exclusive, overlap, timing, labels, payload,
               ARRAY(SELECT d.parent FROM dependency d WHERE d.child = $2 AND d.until = 'infinity' ORDER BY d.place),
               ARRAY(SELECT d.condition FROM dependency d WHERE d.child = $2 AND d.until = 'infinity' ORDER BY d.place),
               NULL
          FROM job WHERE tenant = $1 AND id = $2 AND version < $3) AS v
  JOIN spec ON spec.id = v.spec
 ORDER BY v.version DESC LIMIT $4

-- :name passages_of_run
-- All that history knows of a run, oldest first.
SELECT attempt, ending, state, started_at, finished_at, worker, error
  FROM history WHERE tenant = $1 AND run = $2 ORDER BY finished_at, fence NULLS LAST

-- :name lingers
-- What keeps a cancelled job from being erased: a run of it that goes on, an instant at which it is to fire the graph that
-- it was the first root of and that nobody else would fire, or a job that waits for it.
SELECT EXISTS (SELECT FROM live_run WHERE job = $1) OR EXISTS (SELECT FROM timer WHERE job = $1)
       OR EXISTS (SELECT FROM subscription s JOIN schedule ON schedule.id = s.schedule
                   WHERE s.head = $1 AND s.job <> $1
                     AND (schedule.next_at <= s.until OR EXISTS (
                              SELECT FROM firing f WHERE f.schedule = s.schedule AND f.closed_at IS NULL))) AS goes_on,
       ARRAY(SELECT d.child FROM dependency d JOIN job ON job.id = d.child
              WHERE d.parent = $1 AND d.until = 'infinity' AND job.gate <> 2 ORDER BY 1 LIMIT 3) AS children

-- :name erase_history
-- Some of it at a time: nobody waits for the whole of a long one.
DELETE FROM history
 WHERE tenant = $1 AND job = $2
   AND run IN (SELECT run FROM history WHERE job = $2 ORDER BY run LIMIT $3)

-- :name erase_job
WITH letters AS (
    DELETE FROM dead_letter WHERE job = $2 AND tenant = $1
), late AS (
    DELETE FROM late_result WHERE job = $2 AND tenant = $1
), asked AS (
    DELETE FROM by_hand WHERE job = $2 AND tenant = $1
), owned AS (
    DELETE FROM subscription WHERE job = $2 AND tenant = $1
), had AS (
    DELETE FROM past_subscription WHERE job = $2 AND tenant = $1
), versions AS (
    DELETE FROM job_version WHERE job = $2 AND tenant = $1
), edges AS (
    DELETE FROM dependency WHERE child = $2 OR parent = $2
)
DELETE FROM job WHERE id = $2 AND tenant = $1
