-- A claim that waits for something to come, up to `patience`: while work comes faster than hints are given, one is always
-- under way. A look each millisecond inside the server costs a tenth of one from outside, and what is seen is taken in
-- the same call. 1 ms is the shortest sleep that PostgreSQL knows.
--
-- What it does when there is something is word for word the statement `claim`, which is not replaced by this: rows that
-- pass through a function are copied once more, and those who find a backlog need not wait.
CREATE FUNCTION claim_when_ready(
    worker bigint, number bigint, lanes integer[], marks bigint[], most integer, portions integer[], patience interval
) RETURNS TABLE (
    fence bigint, "position" integer, id bigint, rank bigint, tenant integer, spec integer, job bigint,
    attempt smallint, deaths smallint, scheduled_at timestamptz, target bytea, payload bytea, forgiven smallint
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    began  timestamptz := clock_timestamp();
    looks  timestamptz := began;
BEGIN
    WHILE NOT EXISTS (SELECT FROM unnest($3, $4) AS wanted(lane, mark)
                       WHERE wanted.lane <> ALL (ARRAY(SELECT lane FROM paused_lane))
                         AND EXISTS (SELECT FROM ready WHERE ready.lane = wanted.lane AND ready.rank >= wanted.mark))
    LOOP
        IF clock_timestamp() >= began + patience THEN
            RETURN;
        END IF;
        -- A look may have to walk over dead entries that a long transaction keeps from being removed.
        PERFORM pg_sleep(greatest(0.001, 4 * extract(epoch FROM clock_timestamp() - looks)));
        looks := clock_timestamp();
    END LOOP;
    RETURN QUERY
WITH head AS MATERIALIZED (
    SELECT ready.ctid AS place, ready.rank, ready.run
      FROM unnest($3::int[], $4::bigint[], $6::int[]) AS wanted(lane, mark, portion)
     CROSS JOIN LATERAL (
            SELECT ready.ctid, ready.rank, ready.run FROM ready
             WHERE ready.lane = wanted.lane AND ready.rank >= wanted.mark
             ORDER BY ready.rank LIMIT wanted.portion FOR UPDATE SKIP LOCKED) AS ready
     WHERE wanted.lane <> ALL (ARRAY(SELECT lane FROM paused_lane))
     LIMIT $5
), popped AS (
    DELETE FROM ready USING head WHERE ready.ctid = head.place RETURNING ready.rank, ready.run
), claimed AS (
    INSERT INTO claim (worker, number, runs)
    SELECT $1, $2, array_agg(run ORDER BY rank) FROM popped HAVING count(*) > 0
    RETURNING id, runs
)
SELECT claimed.id AS fence, taken.position::int AS position, run.id, run.rank, run.tenant, run.spec, run.job,
       run.attempt, run.deaths, run.scheduled_at, run.target, run.payload, run.forgiven
  FROM claimed CROSS JOIN LATERAL unnest(claimed.runs) WITH ORDINALITY AS taken(run, position)
  JOIN run ON run.id = taken.run;
END $$;
