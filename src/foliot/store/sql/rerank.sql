-- :name change_weight
-- NO KEY, so that jobs and specs can be made meanwhile, whose foreign keys share the row.
UPDATE tenant SET weight = $2
  FROM (SELECT id, weight FROM tenant WHERE name = $1 FOR NO KEY UPDATE) AS old
 WHERE tenant.id = old.id
RETURNING tenant.id, old.weight

-- :name read_weight
SELECT weight, EXISTS (SELECT FROM rerank WHERE rerank.tenant = tenant.id) AS is_moving FROM tenant WHERE name = $1

-- :name unusual_tenants
SELECT id, weight, concurrency IS NOT NULL AS limited FROM tenant WHERE weight <> 1 OR concurrency IS NOT NULL

-- :name hold_flows
-- In key order, as `reserve` takes them. Not those of what comes again (8 and more): nobody waits long there, and what does
-- keeps its place.
SELECT flow.lane, flow.tenant, flow.priority, flow.last, lane.v
  FROM flow JOIN lane ON lane.id = flow.lane
 WHERE flow.tenant = $1 AND flow.priority < 8
 ORDER BY flow.lane, flow.tenant, flow.priority
   FOR UPDATE OF flow

-- :name begin_reranks
-- A flow that is still on the move from the time before goes on; when it has arrived, it begins again from there.
INSERT INTO rerank (lane, tenant, priority, before, after, boundary, place, image, seen)
SELECT lane, tenant, priority, before, after, boundary, place, image, boundary
  FROM unnest($1::int[], $2::int[], $3::smallint[], $4::smallint[], $5::smallint[], $6::bigint[], $7::bigint[],
              $8::bigint[]) AS x(lane, tenant, priority, before, after, boundary, place, image)
ON CONFLICT (lane, tenant, priority) DO NOTHING
RETURNING lane, tenant, priority

-- :name unfinished_reranks
SELECT lane, tenant, priority FROM rerank WHERE (lane, tenant, priority) > ($1, $2, $3)
 ORDER BY lane, tenant, priority LIMIT $4

-- :name hold_rerank
-- One scheduler per flow; the others have something else to do.
SELECT rerank.before, rerank.after, rerank.boundary, rerank.place, rerank.image, rerank.landed, lane.v, flow.last,
       rerank.seen_at <= clock_timestamp() - $4::interval AS has_landed
  FROM rerank
  JOIN lane ON lane.id = rerank.lane
  JOIN flow ON flow.lane = rerank.lane AND flow.tenant = rerank.tenant AND flow.priority = rerank.priority
 WHERE rerank.lane = $1 AND rerank.tenant = $2 AND rerank.priority = $3
   FOR UPDATE OF rerank SKIP LOCKED

-- :name land_rerank
UPDATE rerank SET landed = seen, seen = $4, seen_at = clock_timestamp()
 WHERE lane = $1 AND tenant = $2 AND priority = $3
RETURNING landed

-- :name backlog_above
-- There is no index by tenant: the lane is walked in order, and what belongs to others costs a look. Equal ranks stay
-- together, so that the last rank of a page says where the next one begins.
WITH page AS MATERIALIZED (
    SELECT rank, run FROM ready WHERE lane = $1 AND rank > $4 AND rank <= $5
     ORDER BY rank FETCH FIRST ($6::bigint) ROWS WITH TIES
), mine AS (
    SELECT page.rank, page.run, run.job
      FROM page JOIN run ON run.id = page.run JOIN spec ON spec.id = run.spec
     WHERE run.tenant = $2 AND ranked_as(spec.priority, run.id, run.origin, run.attempt, run.scheduled_at) = $3
)
SELECT (SELECT count(*) FROM page) AS scanned, (SELECT max(rank) FROM page) AS through, mine.rank, mine.run, mine.job
  FROM (SELECT) AS always LEFT JOIN mine ON true
 ORDER BY mine.rank, mine.run

-- :name backlog_below
-- The same from the other end.
WITH page AS MATERIALIZED (
    SELECT rank, run FROM ready WHERE lane = $1 AND rank > $4 AND rank <= $5
     ORDER BY rank DESC FETCH FIRST ($6::bigint) ROWS WITH TIES
), mine AS (
    SELECT page.rank, page.run, run.job
      FROM page JOIN run ON run.id = page.run JOIN spec ON spec.id = run.spec
     WHERE run.tenant = $2 AND ranked_as(spec.priority, run.id, run.origin, run.attempt, run.scheduled_at) = $3
)
SELECT (SELECT count(*) FROM page) AS scanned, (SELECT min(rank) FROM page) AS through, mine.rank, mine.run, mine.job
  FROM (SELECT) AS always LEFT JOIN mine ON true
 ORDER BY mine.rank, mine.run

-- :name share_jobs
-- Whoever pauses or cancels a job finds its ready runs by their ranks; in the middle of a move it would find none.
SELECT id FROM job WHERE id = ANY ($1::bigint[]) ORDER BY id FOR KEY SHARE

-- :name move_backlog
-- What a claimer has hold of is leaving and is passed over. The ready row first, as everybody does: whoever has it has
-- the run. Both ranks change together, because `live_run` finds the one by the other.
WITH mine AS MATERIALIZED (
    SELECT ready.place, x.run, x.after
      FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS x(run, before, after)
     CROSS JOIN LATERAL (
            SELECT ready.ctid AS place FROM ready
             WHERE ready.lane = $1 AND ready.rank = x.before AND ready.run = x.run
               FOR UPDATE SKIP LOCKED) AS ready
), moved AS (
    UPDATE ready SET rank = mine.after FROM mine WHERE ready.ctid = mine.place RETURNING ready.run, ready.rank
), told AS (
    UPDATE run SET rank = moved.rank FROM moved WHERE run.id = moved.run RETURNING 1
)
SELECT count(*) FROM told

-- :name note_rerank
UPDATE rerank SET before = $4, after = $5, boundary = $6, place = $7, image = $8,
                  landed = CASE WHEN $9 THEN NULL ELSE landed END,
                  seen = CASE WHEN $9 THEN $6 ELSE seen END,
                  seen_at = CASE WHEN $9 THEN clock_timestamp() ELSE seen_at END
 WHERE lane = $1 AND tenant = $2 AND priority = $3

-- :name hold_weight
-- Whoever changes the weight waits until the flow has come to its end, or is waited for.
SELECT weight FROM tenant WHERE id = $1 FOR SHARE

-- :name hold_flow
SELECT flow.last, lane.v FROM flow JOIN lane ON lane.id = flow.lane
 WHERE flow.lane = $1 AND flow.tenant = $2 AND flow.priority = $3
   FOR UPDATE OF flow

-- :name is_there
SELECT EXISTS (SELECT FROM ready WHERE lane = $1 AND rank = $2)

-- :name end_flow
UPDATE flow SET last = $4 WHERE lane = $1 AND tenant = $2 AND priority = $3

-- :name forget_rerank
DELETE FROM rerank WHERE lane = $1 AND tenant = $2 AND priority = $3
