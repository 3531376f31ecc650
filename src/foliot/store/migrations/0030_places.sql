-- When a job with jitter starts: its own place in the window, and where the next instant comes sooner than the window ends,
-- what is left of it after as many whole distances as fit. So places stay spread over all the time there is: cut off just
-- before the next instant, with an hour of jitter nearly all jobs of every minute began in the same millisecond.
CREATE FUNCTION place_in(at timestamptz, phase integer, following timestamptz) RETURNS timestamptz
    LANGUAGE sql STABLE
RETURN at + phase % greatest(coalesce((extract(epoch FROM following - at) * 1000)::bigint, phase + 1::bigint), 1)
            * interval '1 millisecond';

-- As before (see the twenty-seventh migration), but places of graphs stay before the next instant too, and what is late
-- waits for no place.
CREATE OR REPLACE FUNCTION fire_graphs(schedules bigint[], instants timestamptz[], heads bigint[], firsts bigint[])
    RETURNS TABLE (fired integer, skipped integer)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    reasons   text[];
    graphs    bigint[];
    runs      bigint[];
    jobs      bigint[];
    tenants   integer[];
    ats       timestamptz[];
    left_out  bigint[];
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT x.place, x.at, x.head, x.first, s.tenant, s.exclusive,
               s.closed AND NOT EXISTS (
                   SELECT FROM subscription m WHERE m.head = x.head AND m.schedule = x.schedule AND m.after < x.at
                                                AND m.until >= x.at AND NOT m.closed) AS closed,
               CASE WHEN s.counted
                    THEN (SELECT runs_left FROM job WHERE job.id = x.head FOR NO KEY UPDATE) END AS runs_left
          FROM unnest(schedules, instants, heads, firsts) WITH ORDINALITY AS x(schedule, at, head, first, place)
          JOIN subscription s ON s.schedule = x.schedule AND s.job = x.head AND s.after < x.at AND s.until >= x.at
    ), opened AS (
        INSERT INTO graph_run (id, head, tenant, scheduled_at, exclusive, going)
        SELECT first, head, tenant, at, exclusive, 1 FROM asked WHERE NOT closed AND runs_left IS DISTINCT FROM 0
         ORDER BY head
        ON CONFLICT (head) WHERE exclusive AND ended_at IS NULL DO NOTHING
        RETURNING id
    ), spent AS (
        UPDATE job SET runs_left = job.runs_left - 1
         WHERE id IN (SELECT head FROM asked WHERE runs_left IS NOT NULL AND first IN (SELECT id FROM opened))
        RETURNING id, runs_left
    ), ended AS (
        -- As ordinary jobs: what has had all its runs owns no more instants.
        UPDATE subscription s SET until = least(s.until, greatest(asked.at, c.cursor))
          FROM spent JOIN asked ON asked.head = spent.id JOIN schedule c ON c.id = schedules[asked.place]
         WHERE spent.runs_left = 0 AND s.head = spent.id AND s.schedule = c.id AND s.after < asked.at AND s.until >= asked.at
    )
    SELECT array_agg(CASE WHEN closed THEN 'the job was paused or cancelled'
                          WHEN runs_left = 0 THEN 'the job has had all its runs'
                          WHEN first NOT IN (SELECT id FROM opened) THEN 'the previous run of its graph was still going' END
                     ORDER BY place)
      INTO reasons FROM asked;
    WITH member AS MATERIALIZED (
        SELECT x.first + row_number() OVER (PARTITION BY x.first ORDER BY s.job <> x.head, s.job) - 1 AS run, x.first, x.at,
               x.reason IS NULL AS fires,
               coalesce(x.reason, CASE WHEN s.closed THEN 'the job was paused or cancelled' END) AS reason,
               CASE WHEN f.late_through IS NULL THEN place_in(x.at, lead.phase, f.following) ELSE x.at END AS due_at,
               s.job, s.tenant, s.spec, s.payload, s.limit_key
          FROM unnest(schedules, instants, heads, firsts, reasons) AS x(schedule, at, head, first, reason)
          JOIN firing f ON f.schedule = x.schedule AND f.at = x.at
          JOIN subscription lead ON lead.schedule = x.schedule AND lead.job = x.head AND lead.after < x.at
          JOIN subscription s ON s.head = x.head AND s.schedule = x.schedule AND s.after < x.at AND s.until >= x.at
         WHERE lead.until >= x.at
    ), made AS (
        INSERT INTO run (id, job, origin, occurrence, scheduled_at, due_at, tenant, spec, state, tied, limit_key, payload)
        SELECT run, job, 0, at, at, due_at, tenant, spec, 2, true, limit_key, payload FROM member WHERE reason IS NULL
    ), told AS (
        INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
        SELECT run, job, at, at, clock_timestamp(), tenant, spec, 0, 0, 8, reason FROM member WHERE reason IS NOT NULL
    )
    SELECT array_agg(first) FILTER (WHERE fires), array_agg(run) FILTER (WHERE fires), array_agg(job) FILTER (WHERE fires),
           array_agg(tenant) FILTER (WHERE fires), array_agg(at) FILTER (WHERE fires),
           array_agg(run) FILTER (WHERE fires AND reason IS NOT NULL), count(*) FILTER (WHERE reason IS NULL)::int,
           count(*) FILTER (WHERE reason IS NOT NULL)::int
      INTO graphs, runs, jobs, tenants, ats, left_out, fired, skipped FROM member;
    IF runs IS NOT NULL THEN
        PERFORM lay_graphs(graphs, runs, jobs, tenants, ats);
    END IF;
    IF left_out IS NOT NULL THEN
        PERFORM untie(left_out, '{}');
    END IF;
    RETURN NEXT;
END $$;
