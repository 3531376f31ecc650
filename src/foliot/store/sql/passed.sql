-- :name heads
SELECT id, v FROM lane WHERE v > 0 ORDER BY id

-- :name passed_over
-- What lies below the given rank of its lane, in so many pages of the table. Pages and not ranks: nobody can tell how many
-- dead entries the index has between two ranks, but a page holds what it holds. Lanes come in order, so that each row
-- looks up its own ($3) and the rank that goes with it ($4), and no join is needed.
WITH passed AS MATERIALIZED (
    SELECT lane, rank, run FROM ready
     WHERE ctid >= format('(%s,0)', $1::bigint)::tid AND ctid < format('(%s,0)', $1::bigint + $2::bigint)::tid
       AND rank < ($4::bigint[])[width_bucket(lane, $3::int[])] AND lane = ($3::int[])[width_bucket(lane, $3::int[])]
)
SELECT pg_relation_size('ready') / current_setting('block_size')::bigint AS pages,
       passed.lane, passed.rank, passed.run, run.job
  FROM (SELECT) AS always LEFT JOIN (passed JOIN run ON run.id = passed.run) ON true

-- :name head
SELECT v FROM lane WHERE id = $1
