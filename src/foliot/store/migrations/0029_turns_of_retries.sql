-- Retries and snoozes of one tenant wait for their turn as anything else does: what comes again is ranked in a flow of its
-- own, whose number is the priority's plus 8. It was ranked just above V, however many came at once, and stood before every
-- other tenant.

-- As before (see the fifteenth migration), for runs that hold seats.
CREATE OR REPLACE FUNCTION make_ready(ids bigint[]) RETURNS integer[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
DECLARE
    lanes integer[];
BEGIN
    IF cardinality(ids) = 0 THEN
        RETURN '{}';
    END IF;
    WITH chosen AS MATERIALIZED (
        SELECT run.id, run.tenant, run.due_at, spec.lane, lane.v,
               (as_.priority + CASE WHEN run.fence > 0 AND run.rank > 0 THEN 8 ELSE 0 END)::smallint AS priority,
               greatest(1, 65536 / (tenant.weight * (16 >> as_.priority))) AS step
          FROM unnest(ids) AS x(id)
          JOIN run ON run.id = x.id AND run.state IN (0, 2)
          JOIN spec ON spec.id = run.spec
          JOIN lane ON lane.id = spec.lane
          JOIN tenant ON tenant.id = run.tenant
         CROSS JOIN LATERAL (
                SELECT ranked_as(spec.priority, run.id, run.origin, run.attempt, run.scheduled_at)::int AS priority) AS as_
    ), reserved AS (
        INSERT INTO flow AS f (lane, tenant, priority, last)
        SELECT lane, tenant, priority, v + sum(step) FROM chosen GROUP BY lane, tenant, priority, v
         ORDER BY lane, tenant, priority
        ON CONFLICT (lane, tenant, priority) DO UPDATE
           SET last = greatest(f.last, (SELECT v FROM lane WHERE id = excluded.lane))
                      + excluded.last - (SELECT v FROM lane WHERE id = excluded.lane)
        RETURNING lane, tenant, priority, last
    ), ranked AS (
        SELECT c.id, c.lane,
               r.last - c.step * (row_number() OVER (PARTITION BY c.lane, c.tenant, c.priority
                                                     ORDER BY c.due_at DESC, c.id DESC) - 1) AS rank
          FROM chosen c JOIN reserved r ON r.lane = c.lane AND r.tenant = c.tenant AND r.priority = c.priority
    ), admitted AS (
        UPDATE run SET state = 1, rank = ranked.rank,
                       occurrence = CASE WHEN run.occurrence = '-infinity'
                                              AND EXISTS (SELECT FROM seat WHERE seat.run = run.id AND seat.line = 1)
                                         THEN run.scheduled_at ELSE run.occurrence END
          FROM ranked WHERE run.id = ranked.id
        RETURNING run.id, run.rank, ranked.lane
    ), queued AS (
        INSERT INTO ready (lane, rank, run) SELECT lane, rank, id FROM admitted RETURNING lane
    )
    SELECT coalesce(array_agg(DISTINCT lane), '{}') INTO lanes FROM queued;
    RETURN lanes;
END $$;
