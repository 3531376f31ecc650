-- The tables of the first release. Everything lives in the schema `foliot`, so that Foliot can share a database with
-- the applications whose handlers write to it.
-- Hot tables (run, ready, claim, history) have no foreign keys: a key share per insert makes multixacts and slows every
-- settle. What must never be false there is a CHECK or a unique index.

CREATE TABLE tenant (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    weight      smallint NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 1000),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE api_key (
    id          text PRIMARY KEY CHECK (id ~ '^[a-z0-9]{12}$'),
    tenant      integer NOT NULL REFERENCES tenant,
    digest      bytea NOT NULL CHECK (length(digest) = 32),
    label       text NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_at  timestamptz
);

-- What a worker subscribes to and what order is kept in. `v` is the highest rank claimed so far, published by claimers
-- at most every 200 ms; enqueuers read this row, never the head of the index.
CREATE TABLE lane (
    id             integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue          text NOT NULL,
    labels         text NOT NULL DEFAULT '',
    handler_group  text NOT NULL,
    v              bigint NOT NULL DEFAULT 0,
    UNIQUE (queue, labels, handler_group)
) WITH (fillfactor = 50);

-- The last rank given out to each (lane, tenant, priority).
CREATE TABLE flow (
    lane      integer NOT NULL,
    tenant    integer NOT NULL,
    priority  smallint NOT NULL,
    last      bigint NOT NULL,
    PRIMARY KEY (lane, tenant, priority)
) WITH (fillfactor = 50);

-- How to run: handler and policy, immutable, known by content within a tenant.
CREATE TABLE spec (
    id        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant    integer NOT NULL REFERENCES tenant,
    digest    bytea NOT NULL CHECK (length(digest) = 32),
    lane      integer NOT NULL REFERENCES lane,
    priority  smallint NOT NULL,
    body      bytea NOT NULL,
    UNIQUE (tenant, digest)
);

-- A recurrence and how far it has been fired: every instant up to `cursor` has been dealt with or stands in an open
-- firing. `next_at` is null while nobody subscribes.
CREATE TABLE schedule (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key      text NOT NULL UNIQUE,
    cursor   timestamptz NOT NULL,
    next_at  timestamptz,
    shard    smallint GENERATED ALWAYS AS (id % 256) STORED,
    CHECK (next_at > cursor)
);
CREATE INDEX schedule_due ON schedule (next_at) WHERE next_at IS NOT NULL;

-- One nominal fire time and what became of it. `through` is later than `at` only for a range of instants that were all
-- missed: one row says so for all of them.
CREATE TABLE firing (
    schedule      bigint NOT NULL,
    at            timestamptz NOT NULL,
    through       timestamptz NOT NULL,
    missed        boolean NOT NULL DEFAULT false,
    done_through  bigint NOT NULL DEFAULT 0,
    fired         integer NOT NULL DEFAULT 0,
    skipped       integer NOT NULL DEFAULT 0,
    opened_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    closed_at     timestamptz,
    PRIMARY KEY (schedule, at),
    CHECK (through >= at),
    CHECK (missed OR through = at)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX firing_open ON firing (at, schedule) WHERE closed_at IS NULL;

CREATE TABLE job (
    id           bigint PRIMARY KEY,
    tenant       integer NOT NULL REFERENCES tenant,
    name         text NOT NULL,
    key          text,                                          -- the owner's own name for declarative upserts
    spec         integer NOT NULL REFERENCES spec,
    kind         smallint NOT NULL CHECK (kind IN (0, 1, 2)),   -- on demand, one time, recurring
    gate         smallint NOT NULL DEFAULT 0 CHECK (gate IN (0, 1, 2)),  -- open, paused, cancelled
    exclusive    boolean NOT NULL,                              -- overlap = skip
    schedule     bigint REFERENCES schedule,
    run          bigint,                                        -- the only run of a one-time job
    ended_state  smallint,                                      -- how that run ended
    timing       jsonb NOT NULL,                                -- the schedule as its owner wrote it
    labels       jsonb NOT NULL DEFAULT '{}',
    payload      bytea NOT NULL,
    version      integer NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((kind = 2) = (schedule IS NOT NULL)),
    CHECK ((kind = 1) = (run IS NOT NULL))
);
CREATE INDEX job_of_tenant ON job (tenant, id);
CREATE UNIQUE INDEX job_by_key ON job (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX job_by_name ON job (tenant, name, id);
CREATE INDEX job_by_label ON job USING gin (labels jsonb_path_ops);

-- Which definition of a job owns which instants of a schedule: those with after < instant <= until. An edit at e ends
-- one row at e and begins another, so no instant is owned twice and none falls between, fired yet or not.
CREATE TABLE subscription (
    schedule   bigint NOT NULL,
    job        bigint NOT NULL,
    after      timestamptz NOT NULL,
    until      timestamptz NOT NULL DEFAULT 'infinity',
    tenant     integer NOT NULL,
    spec       integer NOT NULL,
    exclusive  boolean NOT NULL,
    closed     boolean NOT NULL DEFAULT false,                  -- paused or cancelled: what is left is skipped
    payload    bytea NOT NULL,
    PRIMARY KEY (schedule, job, after),
    CHECK (until >= after)
);
CREATE INDEX subscription_of_job ON subscription (job);

-- Who owned which instants before: with `firing` it tells what became of every instant of every job, also of those
-- that have been changed, paused or cancelled since. Apart, so that firing never walks over them.
CREATE TABLE past_subscription (
    schedule   bigint NOT NULL,
    job        bigint NOT NULL,
    after      timestamptz NOT NULL,
    until      timestamptz NOT NULL,
    tenant     integer NOT NULL,
    closed     boolean NOT NULL
);
CREATE INDEX past_subscription_of_job ON past_subscription (job, until);
CREATE INDEX past_subscription_age ON past_subscription (until);

-- A run that is neither far in the future nor finished. The row is written once and deleted once on the way of success.
-- state: 0 waits for its time, 1 admitted (in `ready`, or covered by a claim), 2 blocked.
-- origin: null for ad-hoc runs, 0 fired by the schedule, 1 the only run of a one-time job, else the run's own id.
CREATE TABLE run (
    id            bigint PRIMARY KEY,
    job           bigint,
    origin        bigint,
    occurrence    timestamptz,
    scheduled_at  timestamptz NOT NULL,
    due_at        timestamptz NOT NULL,
    fence         bigint NOT NULL DEFAULT 0,
    rank          bigint NOT NULL DEFAULT 0,
    started_at    timestamptz,
    tenant        integer NOT NULL,
    spec          integer NOT NULL,
    attempt       smallint NOT NULL DEFAULT 0,
    deaths        smallint NOT NULL DEFAULT 0,
    state         smallint NOT NULL CHECK (state IN (0, 1, 2)),
    target        bytea,
    payload       bytea NOT NULL,
    CHECK ((job IS NULL) = (origin IS NULL)),
    CHECK ((job IS NULL) = (occurrence IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.5);
-- Exactly one run per job and instant; for exclusive jobs the occurrence is -infinity, so a run that is still going
-- makes the next fire a conflict, which is recorded as a skip.
CREATE UNIQUE INDEX run_occurrence ON run (job, occurrence, origin) WHERE job IS NOT NULL;
CREATE INDEX run_due ON run (due_at) WHERE state = 0;

-- What may run now, in order. Narrow on purpose: the claim pops from here and touches nothing else.
CREATE TABLE ready (
    lane  integer NOT NULL,
    rank  bigint NOT NULL,
    run   bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.5);
CREATE INDEX ready_order ON ready (lane, rank) INCLUDE (run);

-- Runs due in more than a minute: ten million of them must not burden `run`. One due index; promote moves them.
CREATE TABLE timer (
    id            bigint PRIMARY KEY,
    job           bigint,
    origin        bigint,
    scheduled_at  timestamptz NOT NULL,
    due_at        timestamptz NOT NULL,
    tenant        integer NOT NULL,
    spec          integer NOT NULL,
    target        bytea,
    payload       bytea NOT NULL,
    CHECK ((job IS NULL) = (origin IS NULL))
);
CREATE INDEX timer_due ON timer (due_at);
CREATE INDEX timer_by_hand ON timer (job) WHERE origin > 1;

-- One process that runs handlers. state: 0 live, 1 draining, 2 dead; dead is final.
CREATE TABLE worker (
    id          bigint PRIMARY KEY,
    name        text NOT NULL,
    state       smallint NOT NULL DEFAULT 0 CHECK (state IN (0, 1, 2)),
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- One batch that a worker took. The id is the fence of every run in it: it only rises. Arrays stay inline and
-- uncompressed (PLAIN, so at most 800 runs), because settle looks into them by position.
CREATE SEQUENCE fence;
CREATE TABLE claim (
    id          bigint PRIMARY KEY DEFAULT nextval('fence'),
    worker      bigint NOT NULL,
    number      bigint NOT NULL,
    claimed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    runs        bigint[] NOT NULL CHECK (cardinality(runs) BETWEEN 1 AND 800),
    UNIQUE (worker, number)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE claim ALTER COLUMN runs SET STORAGE PLAIN;

-- Ballast: rows that no statement ever asks for. These tables are empty one second and full the next, and a planner that
-- was last told "empty" joins them the wrong way about: a claim of 300 out of 9,000 ready runs took 110 ms instead of 4.
-- With ten thousand rows that never leave, no statistics can say so. Lane 0 and tenant 0 do not exist.
CREATE FUNCTION lay_ballast() RETURNS void
    LANGUAGE sql BEGIN ATOMIC
    INSERT INTO run (id, scheduled_at, due_at, tenant, spec, state, payload)
    SELECT -n, 'infinity', 'infinity', 0, 0, 2, '' FROM generate_series(1, 10000) AS n;
    INSERT INTO ready (lane, rank, run) SELECT 0, n, -n FROM generate_series(1, 10000) AS n;
    INSERT INTO timer (id, scheduled_at, due_at, tenant, spec, payload)
    SELECT -n, 'infinity', 'infinity', 0, 0, '' FROM generate_series(1, 10000) AS n;
END;
SELECT lay_ballast();

-- What limits and graphs lock: one row per key, so that who waits and who leaves agree on the order.
CREATE TABLE slot (
    tenant    integer NOT NULL,
    key       text NOT NULL,
    capacity  integer NOT NULL CHECK (capacity > 0),
    PRIMARY KEY (tenant, key)
) WITH (fillfactor = 50);

-- Every attempt, and every occurrence that ended without one. Leaves are made ahead, by time; there is no default
-- leaf, so a missing one is an error and not a slow surprise.
CREATE TABLE history (
    run           bigint NOT NULL,
    job           bigint,
    scheduled_at  timestamptz NOT NULL,
    due_at        timestamptz NOT NULL,
    started_at    timestamptz,
    finished_at   timestamptz NOT NULL,
    worker        bigint,
    fence         bigint,
    tenant        integer NOT NULL,
    spec          integer NOT NULL,
    attempt       smallint NOT NULL,
    ending        smallint NOT NULL,
    state         smallint NOT NULL,
    error         text,
    target        bytea                                         -- what varied per run: the address that was called
) PARTITION BY RANGE (finished_at);
CREATE INDEX history_run ON history (tenant, run);
CREATE INDEX history_job ON history (job, run) WHERE job IS NOT NULL;

-- Runs that have used their attempts, whole, so that a replay can go on with them.
CREATE TABLE dead_letter (
    id            bigint PRIMARY KEY,
    job           bigint,
    origin        bigint,
    scheduled_at  timestamptz NOT NULL,
    due_at        timestamptz NOT NULL,
    died_at       timestamptz NOT NULL,
    fence         bigint NOT NULL,
    tenant        integer NOT NULL,
    spec          integer NOT NULL,
    attempt       smallint NOT NULL,
    error         text,
    target        bytea,
    payload       bytea NOT NULL
);
CREATE INDEX dead_letter_of_tenant ON dead_letter (tenant, id);

-- First answers, so that the same key creates once.
CREATE TABLE idempotency (
    tenant       integer NOT NULL,
    key          text NOT NULL,
    fingerprint  bytea NOT NULL,
    answer       bytea NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

-- Ids carry time: milliseconds since 2025 above, a number from this sequence's blocks below (see domain/ids.py).
CREATE SEQUENCE id_block;
CREATE FUNCTION first_of_block(block bigint, at timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (floor(extract(epoch FROM at) * 1000)::bigint - 1735689600000) << 22 | (block % 1024) << 12;

-- Makes the leaves of `history` from the end of the last one to `ahead` from now. CREATE and ATTACH, because CREATE ...
-- PARTITION OF would lock out every settle meanwhile. After a long outage it starts afresh yesterday.
CREATE FUNCTION make_history_leaves(span interval, ahead interval) RETURNS integer
    LANGUAGE plpgsql AS $$
DECLARE
    starts  timestamptz;
    leaf    text;
    made    integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('foliot.history'));
    SELECT max((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'))[1]::timestamptz) INTO starts
      FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'history'::regclass;
    starts := greatest(starts, date_trunc('day', clock_timestamp(), 'UTC') - interval '1 day');
    WHILE starts < clock_timestamp() + ahead LOOP
        leaf := 'history_' || to_char(starts AT TIME ZONE 'UTC', 'YYYYMMDD_HH24MI');
        EXECUTE format('CREATE TABLE %I (LIKE history INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', leaf);
        EXECUTE format('ALTER TABLE history ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', leaf, starts, starts + span);
        starts := starts + span;
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;
SELECT make_history_leaves('1 day', '4 days');

-- A run that is admitted is ready while its row stands in `ready`, and running once a claim has popped it.
CREATE VIEW live_run AS
SELECT run.id, run.tenant, run.job, run.spec, run.fence, run.scheduled_at, run.due_at, run.started_at, run.attempt,
       CASE WHEN run.state <> 1 THEN run.state
            WHEN EXISTS (SELECT FROM ready WHERE ready.lane = spec.lane AND ready.rank = run.rank AND ready.run = run.id)
            THEN 1 ELSE 3 END AS state,
       spec.body AS spec_body, run.target, run.payload
  FROM run JOIN spec ON spec.id = run.spec;

-- What people see of a job: its definition, what comes next, what came last, and one word for how it stands.
CREATE VIEW job_view AS
SELECT job.id, job.tenant, job.name, job.key, job.spec, job.kind, job.gate, job.exclusive, job.schedule, job.run,
       job.timing, job.labels, job.payload, job.version, job.created_at, job.updated_at, spec.body AS spec_body,
       schedule.key AS schedule_key, schedule.next_at, owned.after, nullif(owned.until, 'infinity') AS until,
       last.run AS last_run, last.state AS last_state, last.scheduled_at AS last_scheduled_at,
       last.started_at AS last_started_at, last.finished_at AS last_finished_at, last.error AS last_error,
       CASE WHEN job.gate = 2 THEN 'cancelled'
            WHEN job.ended_state = 4 THEN 'completed'
            WHEN job.ended_state = 6 THEN 'cancelled'
            WHEN job.ended_state IS NOT NULL THEN 'failed'
            WHEN going.is_running THEN 'running'
            WHEN job.gate = 1 THEN 'paused'
            WHEN job.kind = 2 AND coalesce(owned.until, '-infinity') < clock_timestamp() THEN 'completed'
            ELSE 'pending' END AS status
  FROM job
  JOIN spec ON spec.id = job.spec
  LEFT JOIN schedule ON schedule.id = job.schedule
  LEFT JOIN LATERAL (SELECT s.after, s.until FROM subscription s
                      WHERE s.job = job.id AND s.schedule = job.schedule ORDER BY s.after DESC LIMIT 1) AS owned ON true
  LEFT JOIN LATERAL (SELECT h.run, h.state, h.scheduled_at, h.started_at, h.finished_at, h.error FROM history h
                      WHERE h.job = job.id AND h.state > 3 ORDER BY h.run DESC, h.finished_at DESC LIMIT 1) AS last ON true
 CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM live_run r WHERE r.job = job.id AND r.state = 3) AS is_running) AS going;
