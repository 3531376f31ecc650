-- How much of each tenant comes in: how fast, how much may wait, and how many of what it may own.

-- Null is no limit of its own: what the deployment says counts then, and for quotas nothing.
ALTER TABLE tenant
    ADD COLUMN rate            double precision CHECK (rate > 0),
    ADD COLUMN burst           integer CHECK (burst > 0),
    ADD COLUMN backlog         bigint CHECK (backlog > 0),
    ADD COLUMN most_jobs       integer CHECK (most_jobs >= 0),
    ADD COLUMN most_schedules  integer CHECK (most_schedules >= 0),
    ADD COLUMN most_keys       integer CHECK (most_keys >= 0),
    ADD CONSTRAINT tenant_whole_rate CHECK ((rate IS NULL) = (burst IS NULL));
ALTER TABLE api_key
    ADD COLUMN rate   double precision CHECK (rate > 0),
    ADD COLUMN burst  integer CHECK (burst > 0),
    ADD CONSTRAINT api_key_whole_rate CHECK ((rate IS NULL) = (burst IS NULL));

-- What is left of each limit, for all API processes together. Each brings what it has let in, every second, and takes
-- home what is left (domain/bucket.py). `key` is empty for the tenant's own. It is not logged: after a crash every bucket
-- is full, and that is all that is lost.
CREATE UNLOGGED TABLE allowance (
    tenant  integer NOT NULL,
    key     text NOT NULL,
    level   double precision NOT NULL,
    asked   bigint NOT NULL,                                    -- ever, whether or not it was let in
    at      timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
) WITH (fillfactor = 50);

-- What quotas count. One-time jobs are not counted, nor what is cancelled: they come to an end by themselves.
CREATE INDEX job_counted ON job (tenant, kind) WHERE kind <> 1 AND gate <> 2;
