-- :name list_workers
-- Newest first: those that live, and those that died within a day (see `remove_dead_workers`).
SELECT worker.id, worker.name, worker.state, worker.host, worker.pid, worker.version, worker.app, worker.concurrency,
       (SELECT coalesce(sum(each), 0)::int FROM unnest(worker.running) AS each) AS running,
       ARRAY(SELECT DISTINCT queue FROM lane WHERE lane.id = ANY (worker.lanes) ORDER BY 1) AS queues,
       ARRAY(SELECT DISTINCT handler_group FROM lane WHERE lane.id = ANY (worker.lanes) ORDER BY 1) AS handlers,
       ARRAY(SELECT DISTINCT label FROM lane CROSS JOIN LATERAL unnest(string_to_array(lane.labels, ',')) AS label
              WHERE lane.id = ANY (worker.lanes) AND lane.labels <> '' ORDER BY 1) AS labels,
       worker.started_at, worker.seen_at
  FROM worker
 WHERE ($1::bigint IS NULL OR worker.id = $1)
   AND ($2::smallint IS NULL OR worker.state = $2)
   AND ($3::timestamptz IS NULL OR (worker.started_at, worker.id) < ($3, $4::bigint))
 ORDER BY worker.started_at DESC, worker.id DESC LIMIT $5

-- :name drain_worker
UPDATE worker SET state = 1 WHERE id = $1 AND state = 0 RETURNING id

-- :name pause_queue
-- The first pause counts: asking again does not move the instant by which it holds.
INSERT INTO queue_pause (queue) VALUES ($1) ON CONFLICT (queue) DO NOTHING RETURNING queue

-- :name resume_queue
DELETE FROM queue_pause WHERE queue = $1 RETURNING queue

-- :name list_queues
-- By name. What is counted is counted up to a bound: a backlog of millions must not make looking at it slow. The oldest
-- run is looked for among the first hundred of each lane: within a flow the first is the oldest, and flows take turns.
WITH page AS MATERIALIZED (
    SELECT DISTINCT queue FROM lane WHERE queue > $1 AND ($2::text IS NULL OR queue = $2) ORDER BY queue LIMIT $3
), member AS MATERIALIZED (
    SELECT lane.id, lane.queue, waiting.runs, oldest.due_at,
           lane.handler_group || CASE WHEN lane.labels = '' THEN '' ELSE ' with ' || replace(lane.labels, ',', ', ') END
           AS handler,
           lane.id IN (SELECT lane FROM offered_lane) AS is_offered
      FROM page JOIN lane ON lane.queue = page.queue
     CROSS JOIN LATERAL (
            SELECT count(*) AS runs FROM (SELECT FROM ready WHERE ready.lane = lane.id LIMIT 100000) AS head) AS waiting
     CROSS JOIN LATERAL (
            SELECT min(run.due_at) AS due_at
              FROM (SELECT ready.run FROM ready WHERE ready.lane = lane.id ORDER BY ready.rank LIMIT 100) AS head
              JOIN run ON run.id = head.run) AS oldest
), hand AS (
    SELECT member.queue, count(DISTINCT worker.id) FILTER (WHERE worker.state = 0) AS workers,
           sum(told.running) AS running, sum(told.rate) AS rate
      FROM worker
     CROSS JOIN LATERAL unnest(worker.lanes, worker.running, worker.rate) AS told(lane, running, rate)
      JOIN member ON member.id = told.lane
     WHERE worker.state IN (0, 1) AND worker.seen_at > clock_timestamp() - interval '15 seconds'
     GROUP BY member.queue
), later AS (
    SELECT member.queue, count(*) AS runs
      FROM (SELECT soon.spec FROM (SELECT spec FROM run WHERE state = 0 AND due_at < 'infinity'
                                    ORDER BY due_at LIMIT 10000) AS soon
             UNION ALL
            SELECT far.spec FROM (SELECT spec FROM timer WHERE due_at < 'infinity'
                                   ORDER BY due_at LIMIT 10000) AS far) AS waiting
      JOIN spec ON spec.id = waiting.spec
      JOIN member ON member.id = spec.lane
     GROUP BY member.queue
)
SELECT member.queue AS name, queue_pause.paused_at, sum(member.runs)::bigint AS ready,
       coalesce(max(hand.running), 0)::bigint AS running, coalesce(max(later.runs), 0)::bigint AS scheduled,
       coalesce(max(hand.rate), 0)::float8 AS rate, coalesce(max(hand.workers), 0)::int AS workers,
       greatest(extract(epoch FROM clock_timestamp() - min(member.due_at)), 0)::float8 AS oldest_age,
       array_remove(array_agg(CASE WHEN member.runs > 0 AND NOT member.is_offered THEN member.handler END
                              ORDER BY member.handler), NULL) AS unserved
  FROM member
  LEFT JOIN queue_pause ON queue_pause.queue = member.queue
  LEFT JOIN hand ON hand.queue = member.queue
  LEFT JOIN later ON later.queue = member.queue
 GROUP BY member.queue, queue_pause.paused_at
 ORDER BY member.queue

-- :name fleet_gauges
SELECT (SELECT count(*) FROM worker WHERE state = 0) AS live,
       (SELECT count(*) FROM worker WHERE state = 1) AS draining,
       (SELECT count(*) FROM queue_pause) AS paused_queues,
       (SELECT count(*) FROM lane
         WHERE lane.id NOT IN (SELECT lane FROM offered_lane)
           AND EXISTS (SELECT FROM ready WHERE ready.lane = lane.id)) AS unserved_lanes

-- :name look_at_processes
-- For who starts and stops the processes of one machine: how many of them have work in hand, and how much waits in the
-- lanes that they serve, counted up to $3. What is paused waits for nobody. With $4 only those that this key registered.
WITH mine AS MATERIALIZED (
    SELECT lanes, running FROM worker WHERE host = $1 AND pid = ANY ($2::int[]) AND state IN (0, 1)
       AND ($4::text IS NULL OR key = $4)
)
SELECT (SELECT count(*) FROM mine WHERE 0 < ANY (mine.running)) AS busy,
       (SELECT count(*) FROM (
            SELECT FROM (SELECT DISTINCT unnest(lanes) AS lane FROM mine) AS wanted
             CROSS JOIN LATERAL (SELECT FROM ready WHERE ready.lane = wanted.lane LIMIT $3) AS waiting
             WHERE wanted.lane <> ALL (ARRAY(SELECT lane FROM paused_lane))
             LIMIT $3) AS head) AS backlog
