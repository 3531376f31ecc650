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

-- :name vacant
-- Of the next runs that have seats: those that are gone. There must be none.
WITH page AS MATERIALIZED (
    SELECT DISTINCT run FROM seat WHERE run > $1 ORDER BY run LIMIT $2
)
SELECT count(*) AS looked_at, max(page.run) AS reached, array_agg(page.run) FILTER (WHERE run.id IS NULL) AS found
  FROM page LEFT JOIN run ON run.id = page.run

-- :name stranded
-- Of the next runs: those that are blocked though they stand in no line, wait for no parent, and are not paused. There must
-- be none. Asked as values, the last three are looked up for those that are blocked, and never joined from whole tables.
WITH page AS MATERIALIZED (
    SELECT id, job, state = 2 AND tied AS is_blocked FROM run WHERE id > greatest($1::bigint, 0) ORDER BY id LIMIT $2
)
SELECT count(*) AS looked_at, max(id) AS reached,
       array_agg(id) FILTER (
           WHERE is_blocked AND (SELECT gate FROM job WHERE job.id = page.job) IS DISTINCT FROM 1
             AND (SELECT run FROM seat WHERE seat.run = page.id AND seat.state BETWEEN 1 AND 1 LIMIT 1) IS NULL
             AND (SELECT state FROM node WHERE node.run = page.id) IS DISTINCT FROM 0) AS found
  FROM page

-- :name free_stranded
-- As when a job goes on (`unblock_runs`): promote asks for gates, times and limits. Asked again under the locks of the jobs.
UPDATE run SET state = 0
 WHERE id = ANY ($1::bigint[]) AND state = 2 AND tied
   AND (SELECT gate FROM job WHERE job.id = run.job) IS DISTINCT FROM 1
   AND NOT EXISTS (SELECT FROM seat WHERE seat.run = run.id AND seat.state BETWEEN 1 AND 1)
   AND NOT EXISTS (SELECT FROM node WHERE node.run = run.id AND node.state = 0)

-- :name knock
INSERT INTO knock (slot) SELECT unnest($1::bigint[])

-- :name tidy_slots
SELECT tidy_slots($1, $2)
