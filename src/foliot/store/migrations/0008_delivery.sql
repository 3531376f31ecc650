-- Delivery: which runs may not be run twice, and what workers say of runs that they have lost.

-- The reaper asks for it; what a spec says otherwise only workers need to know.
ALTER TABLE spec ADD COLUMN at_most_once boolean NOT NULL DEFAULT false;

-- What a handler said when its worker held the run no more: how the attempt really ended, for people. The run went its own
-- way: retried, dead, or unknown. Apart from history, because it comes when that row has long been written.
CREATE TABLE late_result (
    run           bigint NOT NULL,
    fence         bigint NOT NULL,
    tenant        integer NOT NULL,
    job           bigint,
    attempt       smallint NOT NULL,
    worker        bigint NOT NULL,
    scheduled_at  timestamptz NOT NULL,
    started_at    timestamptz,
    recorded_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    ending        smallint NOT NULL,
    error         text,
    PRIMARY KEY (run, fence)
);
CREATE INDEX late_result_of_tenant ON late_result (tenant, run, fence);
CREATE INDEX late_result_age ON late_result (recorded_at);

-- Ballast counts only once it has been counted: an autovacuum that looks while it is being laid notes pages without rows,
-- and until it looks again a claim walks all of `run` for each of its runs (5,040 ms instead of 29). So it is counted in
-- the transaction that lays it, whose lock keeps autovacuum away until it is there.
CREATE OR REPLACE FUNCTION lay_ballast() RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO run (id, scheduled_at, due_at, tenant, spec, state, payload)
    SELECT -n, 'infinity', 'infinity', 0, 0, 2, '' FROM generate_series(1, 10000) AS n;
    INSERT INTO ready (lane, rank, run) SELECT 0, n, -n FROM generate_series(1, 10000) AS n;
    INSERT INTO timer (id, scheduled_at, due_at, tenant, spec, payload)
    SELECT -n, 'infinity', 'infinity', 0, 0, '' FROM generate_series(1, 10000) AS n;
    ANALYZE run, ready, timer;
END $$;
-- A vacuum steps over the pages of the ballast and reckons them as full as the table was on average: after a burst that has
-- been worked off, hardly at all (10,000 rows were 2,231 after 60 vacuums of light traffic). Only ANALYZE sets that right,
-- so it comes with every vacuum, and not after half of the table has changed.
ALTER TABLE run SET (autovacuum_analyze_scale_factor = 0.01);
ANALYZE run, ready, timer;
