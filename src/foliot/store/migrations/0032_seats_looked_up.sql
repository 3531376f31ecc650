-- Whoever plans while `seat` and `slot` are empty, and known to be, joins them by walking over all of each: right for
-- nobody a second later. A connection keeps such a plan until a vacuum comes by; 1,000 runs of new keys took 100 ms then,
-- and 780 after the eighth thousand. So both are looked up one by one, whatever anybody believes.

-- Gives seats to those of these runs that have none: in the first of their lines they stand from now on. Only tenants'
-- lines are ordered by priority: within a limit of its own a job's runs go first in, first out. A job's limit is the one
-- that it has now. Says how many were given seats, which of them are to take the place of their predecessors, and which
-- lines were known with another capacity.
CREATE OR REPLACE FUNCTION take_seats(ids bigint[], OUT seated integer, OUT newer bigint[], OUT slots bigint[], OUT capacities integer[])
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
BEGIN
    WITH needed AS MATERIALIZED (
        SELECT its.*, known.capacity AS known, known.idle_since
          FROM (SELECT run.id, each.line, each.owner, each.capacity, run.due_at, job.overlap = 3 AND each.line = 1 AS is_newer,
                       slot_number(run.tenant, each.line, each.owner, each.key) AS slot,
                       CASE WHEN each.line = 3 THEN spec.priority ELSE 0 END AS priority, each.is_first, each.next
                  FROM unnest(ids) AS x(id)
                  JOIN run ON run.id = x.id
                  JOIN spec ON spec.id = run.spec
                  JOIN tenant ON tenant.id = run.tenant
                  LEFT JOIN job ON job.id = run.job
                 CROSS JOIN LATERAL (
                        SELECT CASE WHEN job.overlap > 0 AND run.origin = 0 THEN 1 END AS one,
                               CASE WHEN run.job IS NULL THEN spec.concurrency
                                    ELSE (SELECT current.concurrency FROM spec current WHERE current.id = job.spec)
                               END AS two
                        OFFSET 0) AS of_job
                 CROSS JOIN LATERAL (VALUES
                        (1, of_job.one, run.job, NULL::bigint, true,
                         CASE WHEN of_job.two IS NOT NULL THEN 2 WHEN tenant.concurrency IS NOT NULL THEN 3 END),
                        (2, of_job.two, coalesce(run.job, -spec.lane), run.limit_key, of_job.one IS NULL,
                         CASE WHEN tenant.concurrency IS NOT NULL THEN 3 END),
                        (3, tenant.concurrency, 0, NULL, of_job.one IS NULL AND of_job.two IS NULL, NULL))
                        AS each(line, capacity, owner, key, is_first, next)
                 WHERE each.capacity IS NOT NULL AND (SELECT seat.line FROM seat WHERE seat.run = run.id LIMIT 1) IS NULL
                OFFSET 0) AS its                                -- the number of a slot is reckoned once
          LEFT JOIN LATERAL (SELECT slot.capacity, slot.idle_since FROM slot WHERE slot.id = its.slot OFFSET 0) AS known ON true
    ), opened AS (
        INSERT INTO slot (id, owner, capacity)
        SELECT DISTINCT ON (slot) slot, owner, capacity FROM needed WHERE known IS NULL OR idle_since IS NOT NULL ORDER BY slot
        ON CONFLICT (id) DO UPDATE SET idle_since = NULL
    ), placed AS (
        INSERT INTO seat (run, line, slot, priority, at, state, next)
        SELECT id, line, slot, priority, due_at, is_first::int, next FROM needed
    )
    SELECT count(*) FILTER (WHERE is_first), array_agg(id) FILTER (WHERE is_newer),
           array_agg(slot) FILTER (WHERE known <> capacity), array_agg(capacity) FILTER (WHERE known <> capacity)
      INTO seated, newer, slots, capacities FROM needed;
END $$;

-- A graph is locked whole; one-time jobs have none, so there the run and those who wait for it are. After the slots, before
-- the runs.
CREATE OR REPLACE FUNCTION lock_ties(ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
DECLARE
    slots bigint[];
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a run that others wait for cannot be settled at the isolation level %',
                        current_setting('transaction_isolation')
              USING ERRCODE = 'feature_not_supported', HINT = 'use READ COMMITTED for runs under a limit, or of a graph';
    END IF;
    slots := ARRAY(SELECT id FROM slot WHERE id = ANY (ARRAY(SELECT slot FROM seat WHERE run = ANY (ids))) ORDER BY id FOR UPDATE);
    PERFORM FROM graph_run WHERE id IN (SELECT graph FROM node WHERE run = ANY (ids)) ORDER BY id FOR UPDATE;
    PERFORM FROM node
      WHERE graph IS NULL
        AND run IN (SELECT unnest(n.run || n.children) FROM node n WHERE n.run = ANY (ids) AND n.graph IS NULL)
      ORDER BY run FOR UPDATE;
    RETURN slots;
END $$;

-- After something has happened to these runs, whose lines (`slots`) were locked before it did: those that are gone leave
-- their seats; those that wait for their time leave the ones that others may have meanwhile. Under a limit of 1 the seat
-- is kept, so that nobody overtakes; not a tenant's, whose other jobs have nothing to do with it. Those of a paused job
-- leave the line, and of what they hold the tenant's seat only: nobody else asks for the others. What is free is handed
-- over; answers with the runs that won.
CREATE OR REPLACE FUNCTION vacate(ids bigint[], slots bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
BEGIN
    DELETE FROM seat WHERE seat.run = ANY (ids) AND NOT EXISTS (SELECT FROM run WHERE run.id = seat.run);
    WITH staying AS MATERIALIZED (
        SELECT run.id, coalesce(job.gate, 0) = 1 AS paused
          FROM run LEFT JOIN job ON job.id = run.job
         WHERE run.id = ANY (ids) AND (run.state = 0 OR (run.state = 2 AND job.gate = 1))
    )
    UPDATE seat SET state = 0
      FROM (SELECT mine.place
              FROM staying
             CROSS JOIN LATERAL (SELECT s.ctid AS place, s.line, s.state, s.slot FROM seat s WHERE s.run = staying.id OFFSET 0) AS mine
             WHERE mine.state > 0
               AND NOT (mine.state = 2 AND mine.line < 3
                        AND (staying.paused OR (SELECT slot.capacity FROM slot WHERE slot.id = mine.slot) = 1))
            OFFSET 0) AS left_
     WHERE seat.ctid = left_.place;
    RETURN hand_over(slots);
END $$;
