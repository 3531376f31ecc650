-- Operations: work on many runs that is asked for once, goes on for a while, tells how far it is and can be cancelled.

-- kind: 1 back-fill. state: 0 pending, 1 running, 2 completed, 3 cancelled, 4 failed. A cancelled one is finished once
-- the last of its runs has ended. The counters say what `operation_item` says, and change in the same transaction.
CREATE TABLE operation (
    id            bigint PRIMARY KEY,
    tenant        integer NOT NULL REFERENCES tenant,
    kind          smallint NOT NULL CHECK (kind IN (1)),
    job           bigint,                                       -- whose runs it makes
    name          text NOT NULL,
    state         smallint NOT NULL DEFAULT 0 CHECK (state IN (0, 1, 2, 3, 4)),
    arguments     jsonb NOT NULL,                               -- what was asked for, as its owner wrote it
    since         timestamptz NOT NULL,                         -- the range of a back-fill
    until         timestamptz NOT NULL,
    newest_first  boolean NOT NULL,
    concurrency   integer NOT NULL CHECK (concurrency > 0),
    total         integer NOT NULL,
    skipped       integer NOT NULL DEFAULT 0,
    submitted     integer NOT NULL DEFAULT 0,
    succeeded     integer NOT NULL DEFAULT 0,
    failed        integer NOT NULL DEFAULT 0,
    cancelled     integer NOT NULL DEFAULT 0,
    live          integer GENERATED ALWAYS AS (submitted - succeeded - failed - cancelled) STORED,
    left_over     integer GENERATED ALWAYS AS (total - skipped - submitted) STORED,  -- not handed out yet
    reason        text,                                         -- why it was stopped
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at    timestamptz,
    finished_at   timestamptz,
    CHECK (since <= until),
    CHECK (live BETWEEN 0 AND concurrency),
    CHECK (left_over >= 0),
    CHECK (finished_at IS NULL OR live = 0)
) WITH (fillfactor = 50);
CREATE INDEX operation_of_tenant ON operation (tenant, id);
CREATE INDEX operation_of_job ON operation (job, id);
CREATE INDEX operation_unfinished ON operation (id) WHERE finished_at IS NULL;
CREATE INDEX operation_age ON operation (finished_at);

-- One run that an operation makes, once: without `run` it waits for its turn; `state` is how the run ended, or 8 where
-- there was no need for one any more. No foreign key: 100,000 of these are written at once and removed at once.
CREATE TABLE operation_item (
    operation  bigint NOT NULL,
    at         timestamptz NOT NULL,
    run        bigint,
    state      smallint CHECK (state > 3),
    PRIMARY KEY (operation, at),
    CHECK (run IS NOT NULL OR state IS NULL OR state = 8)
);
CREATE INDEX operation_item_waiting ON operation_item (operation, at) WHERE run IS NULL AND state IS NULL;
CREATE INDEX operation_item_live ON operation_item (operation, run) WHERE run IS NOT NULL AND state IS NULL;
