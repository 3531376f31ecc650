-- :name explain_run
-- A run wherever it is, with what its gates ask for. What stands before it is counted backwards from its own rank: with a
-- million ready that is $3 entries of the index, and never the dead ones at its head. What attempts of its kind took is
-- told by the last of them; both looks into history are bounded.
WITH found AS MATERIALIZED (
    SELECT r.id, r.job, r.spec, r.spec_body, r.state, r.scheduled_at, r.due_at, r.started_at, NULL::timestamptz AS finished_at,
           r.attempt, run.deaths AS mark, coalesce(run.crashes, 0) AS crashes, run.cancel_asked, run.limit_key, run.origin,
           run.rank, r.fence, NULL::text AS error, NULL::text AS error_class
      FROM live_run r JOIN run ON run.id = r.id WHERE r.tenant = $1 AND r.id = $2
    UNION ALL
    SELECT t.id, t.job, t.spec, spec.body, 0, t.scheduled_at, t.due_at, NULL, NULL, 0::smallint, 0::smallint, 0::smallint,
           NULL, t.limit_key, t.origin, 0, 0, NULL, NULL
      FROM timer t JOIN spec ON spec.id = t.spec WHERE t.tenant = $1 AND t.id = $2
    UNION ALL
    SELECT o.id, NULL, NULL, o.body, 0, o.due_at, o.due_at, NULL, NULL, 0::smallint, 0::smallint, 0::smallint, NULL, NULL,
           NULL, 0, 0, NULL, NULL
      FROM outbox o WHERE o.tenant = $1 AND o.id = $2 AND o.refused IS NULL
    UNION ALL
    (SELECT h.run, h.job, h.spec, spec.body, h.state, h.scheduled_at, h.due_at, h.started_at, h.finished_at, h.attempt,
            0::smallint, 0::smallint, NULL, NULL, NULL, 0, 0, coalesce(d.error, h.error), coalesce(d.error_class, h.error_class)
       FROM history h JOIN spec ON spec.id = h.spec LEFT JOIN dead_letter d ON d.id = h.run
      WHERE h.tenant = $1 AND h.run = $2 AND h.state > 3 ORDER BY h.finished_at DESC LIMIT 1)
    LIMIT 1
)
SELECT found.id AS run, found.spec_body, found.state, found.scheduled_at, found.due_at, found.finished_at,
       found.attempt, found.mark, found.crashes, found.cancel_asked, found.limit_key, found.origin, found.error_class,
       clock_timestamp() AS now, coalesce(outside.started_at, found.started_at) AS started_at,
       outside.until AS outside_until, coalesce(outside.worker, held.worker) AS worker, held.claimed_at AS held_since,
       job.id AS job, job.name AS job_name, job.gate AS job_gate, job.paused_at AS job_paused_at, spec.lane,
       job.overlap, CASE WHEN found.job IS NULL THEN spec.concurrency ELSE (
           SELECT current.concurrency FROM spec current WHERE current.id = job.spec) END AS concurrency,
       EXISTS (SELECT FROM node WHERE found.state = 2 AND node.run = found.id AND node.state = 0) AS waits_for_parents,
       CASE WHEN found.state = 1
            THEN (SELECT count(*) FROM (SELECT FROM ready WHERE ready.lane = spec.lane AND ready.rank < found.rank
                                         ORDER BY ready.rank DESC LIMIT $3) AS before)::int END AS ahead,
       CASE WHEN found.state = 1 THEN found.rank END AS rank,
       coalesce(found.error, before.error) AS error, lasted.seconds AS takes
  FROM found
  LEFT JOIN spec ON spec.id = found.spec
  LEFT JOIN job ON job.id = found.job
  LEFT JOIN outside ON outside.run = found.id
  LEFT JOIN LATERAL (SELECT claim.worker, claim.claimed_at FROM claim
                      WHERE found.state = 3 AND found.id = ANY (claim.runs) AND found.fence < claim.id LIMIT 1) AS held ON true
  LEFT JOIN LATERAL (SELECT h.error FROM history h
                      WHERE found.state < 3 AND found.attempt > 0 AND h.tenant = $1 AND h.run = found.id
                      ORDER BY h.finished_at DESC LIMIT 1) AS before ON true
  LEFT JOIN LATERAL (
         SELECT avg(extract(epoch FROM recent.finished_at - recent.started_at))::float8 AS seconds
           FROM ((SELECT h.started_at, h.finished_at, h.spec FROM history h
                   WHERE found.job IS NOT NULL AND h.job = found.job ORDER BY h.run DESC LIMIT 50)
                 UNION ALL
                 (SELECT h.started_at, h.finished_at, h.spec FROM history h
                   WHERE found.job IS NULL AND h.tenant = $1 ORDER BY h.run DESC LIMIT 200)) AS recent
          WHERE recent.started_at IS NOT NULL
            AND (found.job IS NOT NULL OR recent.spec IN (SELECT s.id FROM spec s WHERE s.lane = spec.lane))) AS lasted
         ON found.state < 3

-- :name explain_lines
-- The limits that a run goes by, in the order in which it does: the one of its job's overlap ($5), its job's or key's ($6),
-- its tenant's. Who has no seat yet would stand behind all who wait. The run is null for one that is still to come.
SELECT each.line::int AS number, coalesce(slot.capacity, each.capacity) AS capacity, seat.state AS seat,
       (SELECT count(*) FROM (SELECT FROM seat s WHERE s.slot = its.slot AND s.state = 2 LIMIT $8) AS going)::int AS going,
       (SELECT count(*) FROM (SELECT FROM seat s
                               WHERE s.slot = its.slot AND s.state = 1
                                 AND (s.priority, s.at, s.run) < (its.priority, its.at, its.run)
                               ORDER BY s.priority, s.at, s.run LIMIT $8) AS before)::int AS ahead,
       (SELECT min(run.started_at) FROM (SELECT s.run FROM seat s WHERE s.slot = its.slot AND s.state = 2 LIMIT 1000) AS going
          JOIN run ON run.id = going.run) AS since
  FROM (VALUES (1, $5::int, $3::bigint, NULL::bigint), (2, $6::int, coalesce($3::bigint, -$4::bigint), $7::bigint),
               (3, (SELECT concurrency FROM tenant WHERE id = $1), 0, NULL)) AS each(line, capacity, owner, key)
  LEFT JOIN seat ON seat.run = $2::bigint AND seat.line = each.line
 CROSS JOIN LATERAL (SELECT coalesce(seat.slot, slot_number($1, each.line, each.owner, each.key)) AS slot,
                            CASE WHEN seat.state = 1 THEN seat.priority ELSE 32767 END::smallint AS priority,
                            CASE WHEN seat.state = 1 THEN seat.at ELSE 'infinity' END AS at,
                            CASE WHEN seat.state = 1 THEN seat.run ELSE 9223372036854775807 END AS run) AS its
  LEFT JOIN slot ON slot.id = its.slot
 WHERE each.capacity IS NOT NULL OR seat.run IS NOT NULL
 ORDER BY each.line

-- :name explain_lane
-- A queue and handler, and who serves it: workers that were heard within their lease.
SELECT lane.queue, lane.handler_group AS group, lane.labels, queue_pause.paused_at, fleet.*,
       (SELECT max(worker.seen_at) FROM worker WHERE lane.id = ANY (worker.lanes)) AS last_seen
  FROM lane
  LEFT JOIN queue_pause ON queue_pause.queue = lane.queue
 CROSS JOIN LATERAL (
        SELECT count(*)::int AS queue_workers, count(its.place)::int AS handler_workers,
               count(*) FILTER (WHERE worker.lanes && ARRAY(
                   SELECT other.id FROM lane other WHERE other.queue = lane.queue
                                                     AND other.handler_group = lane.handler_group))::int AS others,
               coalesce(sum(worker.concurrency) FILTER (WHERE its.place IS NOT NULL), 0)::int AS places,
               coalesce(sum((SELECT sum(each) FROM unnest(worker.running) AS each))
                        FILTER (WHERE its.place IS NOT NULL), 0)::int AS busy,
               coalesce(sum(worker.rate[its.place]), 0)::float8 AS rate
          FROM worker CROSS JOIN LATERAL (SELECT array_position(worker.lanes, lane.id) AS place) AS its
         WHERE worker.state = 0 AND worker.seen_at > clock_timestamp() - interval '15 seconds'
           AND worker.lanes && ARRAY(SELECT other.id FROM lane other WHERE other.queue = lane.queue)) AS fleet
 WHERE lane.id = $1

-- :name explain_schedulers
SELECT count(*) FILTER (WHERE seen_at > clock_timestamp() - $1::interval)::int AS schedulers, max(seen_at) AS scheduler_seen,
       (SELECT greatest(extract(epoch FROM latest - clock_timestamp()), 0)::float8 FROM clock) AS behind
  FROM scheduler

-- :name explain_job
-- What `find_job` does not say. A graph that does not overlap with itself goes on as long as anything of it does; its number
-- is that of the run of its first root.
SELECT clock_timestamp() AS now, spec.lane, spec.concurrency, job.runs_left, job.limit_key, owned.phase, owned.catch_up,
       owned.catch_up_window, before.id AS previous, before.scheduled_at, before.started_at,
       ARRAY(SELECT p.name FROM dependency d JOIN job p ON p.id = d.parent
              WHERE d.child = job.id AND d.until = 'infinity' ORDER BY d.place) AS parent_names,
       ARRAY(SELECT r.id FROM job r WHERE r.head = job.head AND r.gate <> 0
                AND NOT EXISTS (SELECT FROM dependency d WHERE d.child = r.id AND d.until = 'infinity') ORDER BY r.id) AS held,
       ARRAY(SELECT r.name FROM job r WHERE r.head = job.head AND r.gate <> 0
                AND NOT EXISTS (SELECT FROM dependency d WHERE d.child = r.id AND d.until = 'infinity') ORDER BY r.id) AS held_names
  FROM job
  JOIN spec ON spec.id = job.spec
  LEFT JOIN LATERAL (SELECT s.phase, s.catch_up, s.catch_up_window FROM subscription s
                      WHERE s.job = coalesce(job.head, job.id) AND s.schedule = job.schedule
                      ORDER BY s.after DESC LIMIT 1) AS owned ON true
  LEFT JOIN LATERAL (SELECT live.id, live.scheduled_at, live.started_at
                       FROM (SELECT run.* FROM run WHERE run.job = job.id ORDER BY run.occurrence LIMIT 1000) AS live
                      WHERE live.origin = 0 AND job.head IS NULL
                     UNION ALL
                     SELECT g.id, g.scheduled_at, NULL FROM graph_run g
                      WHERE g.head = job.head AND g.exclusive AND g.ended_at IS NULL
                     LIMIT 1) AS before ON true
 WHERE job.tenant = $1 AND job.id = $2

-- :name explain_runs_of_job
-- What the runs of a job that have not ended wait for, by the gate that blocks each; of the first $3. (As
-- domain/explain_run.py decides, run by run; there are no numbers here.)
WITH head AS MATERIALIZED (
    SELECT r.id, r.state, r.due_at, r.attempt, spec.lane, run.cancel_asked, job.gate
      FROM live_run r JOIN run ON run.id = r.id JOIN spec ON spec.id = r.spec JOIN job ON job.id = r.job
     WHERE r.tenant = $1 AND r.job = $2 ORDER BY run.job, run.occurrence LIMIT $3
), told AS (
    SELECT head.id, CASE
               WHEN head.cancel_asked IS NOT NULL THEN 'cancel'
               WHEN EXISTS (SELECT FROM outside WHERE outside.run = head.id) THEN 'outside'
               WHEN head.state = 3 THEN 'running'
               WHEN head.gate = 1 THEN 'pause'
               WHEN head.state = 2 AND EXISTS (SELECT FROM node WHERE node.run = head.id AND node.state = 0) THEN 'parents'
               WHEN head.state IN (0, 2) AND head.due_at > clock_timestamp()
               THEN CASE WHEN head.attempt > 0 THEN 'backoff' ELSE 'due' END
               WHEN head.state = 0 THEN 'scheduler'
               WHEN head.state = 2 THEN coalesce(
                   (SELECT (ARRAY['overlap', 'concurrency', 'tenant'])[seat.line] FROM seat
                     WHERE seat.run = head.id AND seat.state BETWEEN 1 AND 1), 'scheduler')
               WHEN head.lane IN (SELECT lane FROM paused_lane) THEN 'queue'
               WHEN head.lane IN (SELECT lane FROM offered_lane) THEN 'turn'
               WHEN EXISTS (SELECT FROM lane mine JOIN lane other ON other.queue = mine.queue
                             WHERE mine.id = head.lane AND other.id IN (SELECT lane FROM offered_lane)) THEN 'handlerWorkers'
               ELSE 'queueWorkers' END AS code
      FROM head
    UNION ALL
    (SELECT t.id, CASE WHEN t.held THEN 'pause' ELSE 'due' END FROM timer t
      WHERE t.tenant = $1 AND t.job = $2 AND t.origin > 1 LIMIT $3)
)
SELECT code, count(*)::int AS runs, min(id) AS oldest FROM told GROUP BY code ORDER BY min(id)
