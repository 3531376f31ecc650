-- A shorter way from the call that submits a run to the first line of its handler.

-- Writes one run that comes alone: what `reserve` and `enqueue` do in two round trips for many.
--
-- It is there for workers before it is on disk, and the call returns when it is: two commits, the first of which waits for
-- no disk. Nothing is lost by that. The caller is answered after the second. A handler begins after its claim is on disk,
-- and what the claim relies on was written to the log before it. So both wait for the disk at the same time, instead of
-- one after the other, and the flow is locked for a moment only.
CREATE PROCEDURE enqueue_alone(
    lane integer, tenant integer, priority smallint, cost bigint, spec integer, target bytea, payload bytea,
    INOUT id bigint DEFAULT NULL
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    place  bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);      -- until the end of the transaction
    INSERT INTO flow AS f (lane, tenant, priority, last)
    SELECT l.id, $2, $3, l.v + cost FROM lane AS l WHERE l.id = $1
    ON CONFLICT (lane, tenant, priority) DO UPDATE SET last = greatest(f.last, excluded.last - cost) + cost
    RETURNING last INTO STRICT place;
    enqueue_alone.id := first_of_block(nextval('id_block'), clock_timestamp());
    INSERT INTO run (id, tenant, spec, scheduled_at, due_at, rank, state, target, payload)
    VALUES ($8, $2, $5, now(), now(), place, 1, $6, $7);
    INSERT INTO ready (lane, rank, run) VALUES ($1, place, $8);
    COMMIT;
    PERFORM pg_logical_emit_message(true, 'foliot', '');        -- something to commit, and with it all before it
END $$;

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
    took   double precision;
BEGIN
    WHILE NOT EXISTS (SELECT FROM unnest($3, $4) AS wanted(lane, mark)
                       WHERE wanted.lane <> ALL (ARRAY(SELECT lane FROM paused_lane))
                         AND EXISTS (SELECT FROM ready WHERE ready.lane = wanted.lane AND ready.rank >= wanted.mark))
    LOOP
        IF clock_timestamp() >= began + patience THEN
            RETURN;
        END IF;
        -- A look may have to walk over dead entries that a long transaction keeps from being removed. Not a little more
        -- than 1 ms for a look of a quarter: sleeps are rounded up to whole ones.
        took := extract(epoch FROM clock_timestamp() - looks);
        PERFORM pg_sleep(CASE WHEN took < 0.001 THEN 0.001 ELSE 4 * took END);
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
