-- :name enter
SELECT enter($1::bigint[])

-- :name answer_knocks
SELECT answer_knocks($1)

-- :name are_knocking
SELECT EXISTS (SELECT FROM knock)

-- :name lock_owners
-- Before their lines, as whoever pauses a job does: what comes back must see the gate.
SELECT id FROM job WHERE id IN (SELECT job FROM run WHERE id = ANY ($1::bigint[])) ORDER BY id FOR KEY SHARE

-- :name lock_ties
SELECT lock_ties($1::bigint[])

-- :name tied_of_job
SELECT ARRAY(SELECT id FROM run WHERE job = $1 AND tied)

-- :name line_up_again
SELECT line_up_again($1)

-- :name relimit
SELECT relimit($1)

-- :name relimit_tenant
SELECT relimit_tenant($1)

-- :name untie
SELECT untie($1::bigint[], $2::bigint[])

-- :name settle_tied
-- `settle` between `lock_ties` and `untie`, in one call; with how many were ours, and in which lanes something became ready.
SELECT done, lanes FROM settle_tied($1, $2::bigint[], $3::bigint[], $4::int[], $5::timestamptz[], $6::bigint[], true)

-- :name tied_among
SELECT id FROM run WHERE id = ANY ($1::bigint[]) AND tied

-- :name left_behind
-- Of the next lines: those with room in which somebody stands that nobody has called. There must be none. One snapshot sees
-- who left together with who was called, so it needs no patience; a line that somebody knocked at is looked after.
WITH page AS MATERIALIZED (
    SELECT id, capacity FROM slot WHERE id > $1 ORDER BY id LIMIT $2
)
SELECT count(*) AS looked_at, max(page.id) AS reached,
       array_agg(page.id) FILTER (
           WHERE EXISTS (SELECT FROM seat WHERE seat.slot = page.id AND seat.state = 1)
             AND page.capacity > (SELECT count(*) FROM seat WHERE seat.slot = page.id AND seat.state = 2)
             AND page.id NOT IN (SELECT slot FROM knock)) AS found
  FROM page

-- :name stranded
-- Of the next runs that have seats: those that are gone, and those that are blocked though they stand in no line. There
-- must be none.
WITH page AS MATERIALIZED (
    SELECT DISTINCT run FROM seat WHERE run > $1 ORDER BY run LIMIT $2
)
SELECT (SELECT count(*) FROM page) AS looked_at, max(page.run) AS reached, array_agg(page.run) FILTER (WHERE run.id IS NULL) AS gone,
       array_agg(page.run) FILTER (
           WHERE run.state = 2 AND job.gate IS DISTINCT FROM 1
             AND NOT EXISTS (SELECT FROM seat WHERE seat.run = page.run AND seat.state BETWEEN 1 AND 1)) AS found
  FROM page LEFT JOIN run ON run.id = page.run LEFT JOIN job ON job.id = run.job

-- :name knock
INSERT INTO knock (slot) SELECT unnest($1::bigint[])

-- :name tidy_slots
SELECT tidy_slots($1, $2)
