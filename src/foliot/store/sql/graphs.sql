-- :name lock_graphs
-- Edits of a tenant's graphs queue up: two that are harmless apart could close a cycle together.
SELECT id FROM tenant WHERE id = $1 FOR NO KEY UPDATE

-- :name find_parents
SELECT id, key FROM job WHERE tenant = $1 AND (id = ANY ($2::bigint[]) OR key = ANY ($3::text[]))

-- :name members
-- These jobs, and all others of the graphs that they are part of.
SELECT id, name, key, kind, gate, schedule, head, run, timing, overlap
  FROM job
 WHERE tenant = $1
   AND (id = ANY ($2::bigint[])
        OR head IN (SELECT head FROM job WHERE tenant = $1 AND id = ANY ($2) AND head IS NOT NULL))

-- :name edges
SELECT parent, child, condition FROM dependency WHERE child = ANY ($1::bigint[]) AND until = 'infinity'

-- :name children
SELECT d.child, job.name FROM dependency d JOIN job ON job.id = d.child
 WHERE d.parent = $1 AND d.until = 'infinity' AND job.gate <> 2 ORDER BY d.child

-- :name depend
INSERT INTO dependency (child, parent, condition, place, after)
SELECT child, parent, condition, place, after
  FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[], $5::timestamptz[])
       AS x(child, parent, condition, place, after)

-- :name depend_no_more
-- Instants up to $2 keep the edges that they had.
UPDATE dependency SET until = greatest(after, $2) WHERE child = ANY ($1::bigint[]) AND until = 'infinity'

-- :name lock_members
SELECT id FROM job WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE

-- :name place_members
UPDATE job SET head = x.head, kind = x.kind, schedule = x.schedule
  FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[]) AS x(id, head, kind, schedule)
 WHERE job.id = x.id

-- :name share_timing
-- A graph has one trigger: what is said of it at one root is said at all.
UPDATE job SET timing = $2::jsonb, runs_left = $3, version = version + 1, updated_at = clock_timestamp()
 WHERE id = ANY ($1::bigint[])

-- :name follow_head
-- The instants of jobs that a graph fires: theirs for as long as the first root has them, which alone decides.
INSERT INTO subscription (schedule, job, after, tenant, spec, exclusive, payload, limit_key, head)
SELECT job.schedule, job.id, greatest($2, schedule.cursor), job.tenant, job.spec, job.exclusive, job.payload,
       job.limit_key, job.head
  FROM job JOIN schedule ON schedule.id = job.schedule
 WHERE job.id = ANY ($1::bigint[]) AND job.head <> job.id

-- :name split_subscription
-- From $2 on the same instants belong to the head of a graph, or to a job that is in none any more.
INSERT INTO subscription (schedule, job, after, until, tenant, spec, exclusive, closed, payload, catch_up, catch_up_window,
                          phase, counted, limit_key, head)
SELECT s.schedule, s.job, $2, s.until, s.tenant, s.spec, s.exclusive, s.closed, s.payload, s.catch_up, s.catch_up_window,
       s.phase, s.counted, s.limit_key, job.head
  FROM subscription s JOIN job ON job.id = s.job
 WHERE s.job = ANY ($1::bigint[]) AND s.after < $2 AND s.until > $2

-- :name end_split
WITH ended AS (
    UPDATE subscription SET until = $2 WHERE job = ANY ($1::bigint[]) AND after < $2 AND until > $2
)
UPDATE subscription s SET head = job.head FROM job WHERE s.job = ANY ($1) AND job.id = s.job AND s.after > $2

-- :name graphs_to_fire
-- The graphs whose first root stands in the next chunks of these firings, each with the number of its jobs.
SELECT x.schedule, x.at, s.job AS head, size.nodes
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[]) AS x(schedule, at, done, upto)
  JOIN firing f ON f.schedule = x.schedule AND f.at = x.at AND f.done_through = x.done AND f.closed_at IS NULL
  JOIN subscription s ON s.schedule = x.schedule AND s.job > x.done AND s.job <= x.upto AND s.head = s.job
                     AND s.after < x.at AND s.until >= x.at
 CROSS JOIN LATERAL (
        SELECT count(*)::int AS nodes FROM subscription m
         WHERE m.head = s.job AND m.schedule = x.schedule AND m.after < x.at AND m.until >= x.at) AS size
 WHERE f.late_through IS NULL
    OR catches_up(s.catch_up, s.catch_up_window, s.until, f.at, f.opened_at, f.following, f.late_through)
 ORDER BY s.job

-- :name fire_graphs
SELECT fired, skipped FROM fire_graphs($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[])

-- :name start_graph
SELECT start_graph($1, $2, $3, $4, $5, $6)

-- :name hold_graph
-- The whole graph is locked, in order: who pauses or cancels one of its jobs meanwhile is waited for, or waits.
WITH held AS MATERIALIZED (
    SELECT id, gate FROM job WHERE head = (SELECT head FROM job WHERE id = $1) ORDER BY id FOR KEY SHARE
)
SELECT count(*) > 0 AND NOT bool_or(gate = 2 OR (gate = 1 AND NOT EXISTS (
           SELECT FROM dependency d WHERE d.child = held.id AND d.until = 'infinity'))) FROM held

-- :name tie_to_parents
SELECT parent, fate FROM tie_to_parents($1::bigint[], $2::bigint[], $3::smallint[])

-- :name replace_node
-- A one-time job that was changed has another run: it waits for the same parents as before until it is told otherwise, and
-- the same children wait for it.
WITH old AS (
    DELETE FROM node WHERE run = $1 RETURNING *
), above AS (
    UPDATE node SET children = array_remove(node.children, $1),
                    conditions = ARRAY(SELECT e.condition FROM unnest(node.children, node.conditions)
                                              WITH ORDINALITY AS e(child, condition, place)
                                        WHERE e.child <> $1 ORDER BY e.place)
      FROM old WHERE node.run = ANY (old.parents)
), below AS (
    UPDATE node SET parents = array_replace(node.parents, $1, $2) FROM old WHERE node.run = ANY (old.children)
)
INSERT INTO node (run, tenant, state, children, conditions)
SELECT $2, tenant, 1, children, conditions FROM old WHERE cardinality(children) > 0

-- :name take_from_timer
WITH moved AS (
    DELETE FROM timer WHERE id = $1 AND EXISTS (SELECT FROM node WHERE node.run = $1) RETURNING *
)
INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, tenant, spec, state, target, payload, limit_key)
SELECT id, job, origin, due_at, scheduled_at, due_at, tenant, spec, CASE WHEN held THEN 2 ELSE 0 END, target, payload,
       limit_key
  FROM moved

-- :name tie_node
UPDATE run SET tied = true WHERE id = $1 AND EXISTS (SELECT FROM node WHERE node.run = $1)

-- :name fired_with
SELECT CASE WHEN job.head IS NULL THEN ARRAY[job.id]
            WHEN EXISTS (SELECT FROM dependency d WHERE d.child = job.id AND d.until = 'infinity') THEN '{}'
            ELSE ARRAY(SELECT member.id FROM job member WHERE member.head = job.head) END
  FROM job WHERE id = $1

-- :name is_open
SELECT NOT EXISTS (SELECT FROM job WHERE head = $1 AND gate <> 0
                      AND NOT EXISTS (SELECT FROM dependency d WHERE d.child = job.id AND d.until = 'infinity'))

-- :name go_along
UPDATE job SET schedule = lead.schedule FROM job lead
 WHERE lead.id = ANY ($1::bigint[]) AND job.head = lead.id AND job.id <> lead.id
RETURNING job.id

-- :name nodes_left_behind
-- Of the next runs of graphs: those that wait for no parent any more and that nobody has let go. There must be none. Page by
-- page, since an index of them, though always empty, would make every count a new row for all indexes.
WITH page AS MATERIALIZED (
    SELECT run, state = 0 AND waits = 0 AND alarms IS NULL AS is_free
      FROM node WHERE run > greatest($1::bigint, 0) ORDER BY run LIMIT $2
)
SELECT count(*) AS looked_at, max(run) AS reached, array_agg(run) FILTER (WHERE is_free) AS found FROM page

-- :name find_graph
-- Ids of a graph's runs follow each other without a gap, so it is the last that begins at or before the run.
SELECT g.id, g.head, g.scheduled_at, g.going, g.ended_at, s.jobs, s.parents, s.children, s.conditions
  FROM (SELECT * FROM graph_run WHERE tenant = $1 AND id <= $2 ORDER BY id DESC LIMIT 1) AS g
  JOIN graph_shape s ON s.id = g.id
 WHERE $2 < g.id + cardinality(s.jobs)

-- :name one_time_graph
-- The one-time jobs that hang together with the one of this run, as far as $3 of them.
WITH RECURSIVE near(job) AS (
    SELECT id FROM job WHERE tenant = $1 AND kind = 1 AND run = $2 AND id = (SELECT job FROM (
               SELECT job FROM run WHERE id = $2 UNION ALL SELECT job FROM timer WHERE id = $2
               UNION ALL SELECT job FROM dead_letter WHERE id = $2
               UNION ALL (SELECT job FROM history WHERE tenant = $1 AND run = $2 LIMIT 1)) AS found LIMIT 1)
    UNION
    SELECT beside.job FROM near CROSS JOIN LATERAL (
           SELECT d.parent AS job FROM dependency d WHERE d.child = near.job AND d.until = 'infinity'
           UNION ALL
           SELECT d.child FROM dependency d WHERE d.parent = near.job AND d.until = 'infinity') AS beside
)
SELECT job.id, job.run FROM (SELECT job FROM near LIMIT $3) AS near JOIN job ON job.id = near.job WHERE job.run IS NOT NULL

-- :name node_states
-- How these runs stand. `state` 1 may be ready or running: whose row is not in `ready` runs.
SELECT x.run, x.job, job.name, job.key, coalesce(live.state, waiting.state, ended.state) AS state,
       coalesce(live.started_at, ended.started_at) AS started_at, ended.finished_at, ended.error
  FROM unnest($2::bigint[], $3::bigint[]) AS x(run, job)
  JOIN job ON job.id = x.job
  LEFT JOIN live_run live ON live.id = x.run
  LEFT JOIN LATERAL (SELECT 0 AS state FROM timer WHERE timer.id = x.run) AS waiting ON live.id IS NULL
  LEFT JOIN LATERAL (
         SELECT h.state, h.started_at, h.finished_at, h.error FROM history h
          WHERE h.tenant = $1 AND h.run = x.run AND h.state > 3 ORDER BY h.finished_at DESC LIMIT 1) AS ended
    ON live.id IS NULL AND waiting.state IS NULL

-- :name why_blocked
-- The parents that a run waits for, those that have failed first; further up, who is to blame for those that wait themselves.
WITH RECURSIVE up(run) AS (
    SELECT unnest(parents) FROM node WHERE run = $1 AND state = 0
    UNION
    SELECT unnest(node.parents) FROM up JOIN node ON node.run = up.run AND node.state = 0
)
SELECT node.run, node.state = 2 AS dead, job.name
  FROM up
  JOIN node ON node.run = up.run
  LEFT JOIN run ON run.id = node.run
  LEFT JOIN dead_letter dead ON dead.id = node.run
  LEFT JOIN job ON job.id = coalesce(run.job, dead.job)
 WHERE node.state = 2 OR node.run = ANY ((SELECT parents FROM node WHERE run = $1)::bigint[])
 ORDER BY node.state = 2 DESC, node.run
 LIMIT $2

-- :name remove_old_graphs
WITH old AS (
    DELETE FROM graph_run WHERE ended_at < statement_timestamp() - interval '30 days'
       AND NOT EXISTS (SELECT FROM node WHERE node.run >= graph_run.id AND node.run < graph_run.id + 4096
                                          AND node.graph = graph_run.id)
    RETURNING id
)
DELETE FROM graph_shape USING old WHERE graph_shape.id = old.id

-- :name remove_old_dependencies
DELETE FROM dependency WHERE until < statement_timestamp() - interval '30 days'

-- :name remove_old_events
DELETE FROM event WHERE at < statement_timestamp() - interval '30 days'

-- :name release_left_behind
UPDATE node SET state = 1 WHERE run = ANY ($1::bigint[]) AND state = 0 AND waits = 0 AND alarms IS NULL RETURNING run, graph

-- :name count_left_behind
UPDATE graph_run g SET going = g.going + late.runs, ended_at = NULL
  FROM (SELECT graph, count(*)::int AS runs FROM unnest($1::bigint[]) AS graph GROUP BY graph) AS late WHERE g.id = late.graph

-- :name tied_letters
SELECT ARRAY(SELECT run FROM node WHERE run = ANY ($1::bigint[]))
