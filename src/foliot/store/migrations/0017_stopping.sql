-- Runs that are to stop although a worker holds them, and what long work tells of itself meanwhile
-- (docs/why/0030-cancel-has-one-winner.md).

-- `cancel_asked`: since when the run is to end. Written under the row's lock, and asked for under it by whoever would let
-- the run go on, so that it never does. A success is not asked: it is the end.
-- `recall`: the worker that holds the run and has something to hear of it: stop it (cancel_asked), or hand it back unless
-- it has begun (its job was paused). Heartbeats look for it. Null, for ordinary runs, takes no room.
ALTER TABLE run ADD COLUMN cancel_asked timestamptz;
ALTER TABLE run ADD COLUMN recall bigint;
CREATE INDEX run_recalled ON run (recall) WHERE recall IS NOT NULL;

-- How far an attempt says that it is: the last word of each. Apart from `run`, whose rows are written once, and from
-- `history`, which settling writes without asking for it.
CREATE TABLE progress (
    run       bigint NOT NULL,
    fence     bigint NOT NULL,
    fraction  double precision CHECK (fraction BETWEEN 0 AND 1),
    done      double precision,
    total     double precision,
    message   text,
    at        timestamptz NOT NULL,
    PRIMARY KEY (run, fence)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX progress_age ON progress (at);

-- What an attempt wants the next one to know: the last word of the run. It stays when the run is dead, for a replay.
CREATE TABLE checkpoint (
    run       bigint PRIMARY KEY,
    fence     bigint NOT NULL,
    state     bytea NOT NULL CHECK (length(state) <= 262144),
    saved_at  timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX checkpoint_age ON checkpoint (saved_at);
