-- Many schedulers: who lives, and who looks after which shard of the schedules. Nothing correct depends on it: cursors
-- and unique keys decide what is fired. It keeps two schedulers from doing the same work.

-- One scheduler process, known by an id of its own at each start. Who has not been seen for a lease is removed, and
-- its shards are free: a shard is held for as long as its owner is heard, so a beat writes one row and not 256.
CREATE TABLE scheduler (
    id          bigint PRIMARY KEY,
    name        text NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    backend     integer NOT NULL DEFAULT pg_backend_pid()       -- the connection it was heard on
) WITH (fillfactor = 50);

-- The epoch rises whenever the shard gets an owner, also if it is the same one again.
CREATE TABLE shard (
    shard  smallint PRIMARY KEY CHECK (shard BETWEEN 0 AND 255),
    owner  bigint,
    epoch  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
INSERT INTO shard (shard) SELECT generate_series(0, 255);

-- The latest time that the database's clock has told a scheduler. A clock that is behind it was set back: cursors
-- stand in its future, and until it has caught up nothing fires.
CREATE TABLE clock (
    only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    latest    timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
INSERT INTO clock DEFAULT VALUES;
