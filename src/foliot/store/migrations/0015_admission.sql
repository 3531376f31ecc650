-- Admission: what may run now for reasons other than time (docs/why/0029-admission.md). A run that is under a limit has a
-- seat for every line it must go through, one after the other: 1 the overlap of its job's scheduled runs, 2 the
-- concurrency of its job or of its key, 3 the concurrency of its tenant. It may run when it holds all of them. So no run
-- waits in two lines at once, and one that waits for its key keeps nobody else of its tenant waiting.

-- The limit belongs to the spec, the line to the job or, for runs without one, to the lane; within it each key has its own.
ALTER TABLE spec ADD COLUMN concurrency integer CHECK (concurrency > 0);
ALTER TABLE tenant ADD COLUMN concurrency integer CHECK (concurrency > 0);
DROP INDEX tenant_weighted;
CREATE INDEX tenant_unusual ON tenant (id) WHERE weight <> 1 OR concurrency IS NOT NULL;
-- 0: `exclusive` says it all (skip or allow), 1 queueOne, 2 queue, 3 cancelPrevious.
ALTER TABLE job ADD COLUMN overlap smallint NOT NULL DEFAULT 0 CHECK (overlap BETWEEN 0 AND 3);
ALTER TABLE job ADD CONSTRAINT job_one_overlap CHECK (overlap = 0 OR NOT exclusive);
-- What the key's path leads to in the payload, as a number; the payload itself may be encrypted.
ALTER TABLE job ADD COLUMN limit_key bigint;
ALTER TABLE subscription
    ADD COLUMN limit_key  bigint,
    ADD COLUMN overlap    smallint;                             -- null where `exclusive` says it all
ALTER TABLE run ADD COLUMN limit_key bigint;
ALTER TABLE timer ADD COLUMN limit_key bigint;
ALTER TABLE dead_letter ADD COLUMN limit_key bigint;
-- Whether it has ties: seats in lines that others wait for. Whoever ends it or puts it off must call `lock_ties` before and
-- `untie` after, in one transaction. Null, for ordinary runs, takes no room. Who writes a run that is to be let in writes it
-- blocked, with this set, and calls `enter`.
ALTER TABLE run ADD COLUMN tied boolean;

-- One row per line, so that who comes and who leaves agree on the order. Its number is made from what it stands for, and
-- ends in the line's (two bits; 0 is free for others who need such rows). Of two lines with the same number, once in a
-- million years, each waits for the other, and nothing worse.
-- `owner`: the job, less than 0 the lane, 0 for a tenant's. The capacity that counts is the one of now, for whoever waits.
DROP TABLE slot;
CREATE TABLE slot (
    id          bigint PRIMARY KEY,
    owner       bigint NOT NULL,
    capacity    integer NOT NULL CHECK (capacity > 0),
    idle_since  timestamptz                                     -- about to be removed, unless somebody comes
) WITH (fillfactor = 50);
CREATE INDEX slot_of_job ON slot (owner) WHERE owner > 0;

-- state: 0 not in line (an earlier line comes first, it waits for its time, or the job is paused), 1 in line, 2 held.
-- `next`: the line that comes after this one, if any.
CREATE TABLE seat (
    run       bigint NOT NULL,
    line      smallint NOT NULL CHECK (line IN (1, 2, 3)),
    slot      bigint NOT NULL,
    priority  smallint NOT NULL,
    at        timestamptz NOT NULL,
    state     smallint NOT NULL CHECK (state IN (0, 1, 2)),
    next      smallint CHECK (next > line),
    PRIMARY KEY (run, line)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
-- These are for lines. Where a run's own seats are looked for, `state < 1` and `BETWEEN 1 AND 1` keep the planner from
-- walking all of one of them for each run: on a table that it believes empty any index is as good as another.
CREATE INDEX seat_out ON seat (slot) WHERE state = 0;
CREATE INDEX seat_held ON seat (slot) WHERE state = 2;
CREATE INDEX seat_waiting ON seat (slot, priority, at, run) WHERE state = 1;

-- Lines that somebody joined while another one had them locked: whoever promotes looks after them. Nearly always empty.
CREATE TABLE knock (
    slot  bigint NOT NULL
);

CREATE FUNCTION slot_number(tenant integer, line integer, owner bigint, key bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (('x' || left(md5(concat_ws(' ', tenant, line, owner, key)), 16))::bit(64)::bigint & -4) | line;

-- Gives seats to those of these runs that have none: in the first of their lines they stand from now on. Only tenants'
-- lines are ordered by priority: within a limit of its own a job's runs go first in, first out. A job's limit is the one
-- that it has now. Says how many were given seats, which of them are to take the place of their predecessors, and which
-- lines were known with another capacity.
CREATE FUNCTION take_seats(ids bigint[], OUT seated integer, OUT newer bigint[], OUT slots bigint[], OUT capacities integer[])
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
                 WHERE each.capacity IS NOT NULL AND NOT EXISTS (SELECT FROM seat WHERE seat.run = run.id)) AS its
          LEFT JOIN slot known ON known.id = its.slot
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

-- Makes those of these runs ready that are blocked, or wait; the lanes in which they are. They hold all their seats. Ranked
-- as if they had been handed in now: who waited for a limit has saved no credit against other tenants. A retry is ranked
-- near the head, as everywhere. The flows are locked until the transaction ends, so this comes last, and once.
-- Whoever stood in the one place of its job's waiting run (overlap: queueOne) leaves it here.
CREATE FUNCTION make_ready(ids bigint[]) RETURNS integer[]
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
        SELECT run.id, run.tenant, run.due_at, spec.lane, lane.v, run.fence > 0 AND run.rank > 0 AS again, as_.priority,
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
        SELECT lane, tenant, priority, v + sum(step) FROM chosen WHERE NOT again GROUP BY lane, tenant, priority, v
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
         WHERE NOT c.again
         UNION ALL
        SELECT id, lane, v + step FROM chosen WHERE again
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

-- Gives what is free in these lines, which the caller has locked, to those in front, and sends these on to their next line;
-- the runs that hold all their seats by that. How many hold a line is counted, never noted: a count cannot drift. A line that is let go altogether
-- may have a million in it, so it goes on in portions.
CREATE FUNCTION hand_over(slots bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
DECLARE
    moved    bigint[];
    winners  bigint[] := '{}';
BEGIN
    FOR this IN 1..3 LOOP
        CONTINUE WHEN NOT EXISTS (SELECT FROM unnest(slots) AS x(slot) WHERE x.slot & 3 = this);
        WITH front AS MATERIALIZED (
            SELECT x.slot, first.place
              FROM unnest(slots) AS x(slot)
              JOIN slot ON slot.id = x.slot
             CROSS JOIN LATERAL (
                    SELECT s.ctid AS place FROM seat s
                     WHERE s.slot = x.slot AND s.state = 1
                     ORDER BY s.priority, s.at, s.run
                     -- Asked here, whether anybody waits is asked once per line; under WHERE it was once per winner, after all.
                     LIMIT CASE WHEN EXISTS (SELECT FROM seat w WHERE w.slot = x.slot AND w.state = 1)
                                THEN least(5000, greatest(0, slot.capacity - (SELECT count(*) FROM seat h
                                                                               WHERE h.slot = x.slot AND h.state = 2)))
                                ELSE 0 END) AS first
             WHERE x.slot & 3 = this
        ), won AS (
            UPDATE seat SET state = 2 FROM front WHERE seat.ctid = front.place
            RETURNING seat.run, seat.next
        ), onward AS (
            UPDATE seat SET state = 1 FROM won WHERE seat.run = won.run AND seat.line = won.next AND seat.state < 1
            RETURNING seat.slot
        ), knocked AS (
            INSERT INTO knock (slot)
            SELECT DISTINCT slot FROM onward WHERE slot NOT IN (SELECT unnest(slots))
             UNION ALL
            SELECT slot FROM front GROUP BY slot HAVING count(*) = 5000
        )
        SELECT array_agg(run) FILTER (WHERE next IS NULL) INTO moved FROM won;
        winners := winners || moved;
    END LOOP;
    RETURN winners;
END $$;

-- Who frees seats locks the lines first, all in one statement and in order; what follows is a later statement, which sees
-- what the one before in line has done. In one statement the wake-up would be lost, and so it would be where later
-- statements see no more than earlier ones.
CREATE FUNCTION lock_slots(ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a run that others wait for cannot be settled at the isolation level %',
                        current_setting('transaction_isolation')
              USING ERRCODE = 'feature_not_supported', HINT = 'use READ COMMITTED for runs under a limit';
    END IF;
    RETURN ARRAY(SELECT id FROM slot WHERE id IN (SELECT slot FROM seat WHERE run = ANY (ids)) ORDER BY id FOR UPDATE);
END $$;

CREATE FUNCTION lock_ties(ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN lock_slots(ids);
END $$;

-- After something has happened to these runs, whose lines (`slots`) were locked before it did: those that are gone leave
-- their seats; those that wait for their time leave the ones that others may have meanwhile. Under a limit of 1 the seat
-- is kept, so that nobody overtakes; not a tenant's, whose other jobs have nothing to do with it. Those of a paused job
-- leave the line, and of what they hold the tenant's seat only: nobody else asks for the others. What is free is handed
-- over; answers with the runs that won.
CREATE FUNCTION vacate(ids bigint[], slots bigint[]) RETURNS bigint[]
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
      FROM staying JOIN seat mine ON mine.run = staying.id AND mine.state > 0 JOIN slot ON slot.id = mine.slot
     WHERE seat.run = mine.run AND seat.line = mine.line
       AND NOT (mine.state = 2 AND mine.line < 3 AND (staying.paused OR slot.capacity = 1));
    RETURN hand_over(slots);
END $$;

-- The seam: whoever ends runs that are tied, or puts them off, does three things in one transaction: `lock_ties`, the deed
-- itself, `untie`. Each is a statement of its own: what follows a lock must see what the one before has done. Returns the
-- lanes in which something became ready.
CREATE FUNCTION untie(ids bigint[], locked bigint[]) RETURNS integer[]
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN make_ready(vacate(ids, locked));
END $$;

-- Ends what waits of the predecessors of these runs (overlap: cancelPrevious), and lets others have their seats; the runs
-- that hold all of theirs by that. What a worker holds is asked to stop, and waited for: the columns for that come with the
-- seventeenth migration, and the worker hears of it with its next heartbeat. What is popped is popped by a statement of its
-- own: one that may have to look at a row again must not ask for a deed.
CREATE FUNCTION supersede(ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
DECLARE
    older   bigint[] := ARRAY(SELECT older.id FROM run newer JOIN run older ON older.job = newer.job AND older.origin = 0
                               WHERE newer.id = ANY (ids) AND older.scheduled_at < newer.scheduled_at);
    locked  bigint[] := lock_slots(older);
    popped  bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM ready USING run JOIN spec ON spec.id = run.spec
         WHERE run.id = ANY (older) AND ready.lane = spec.lane AND ready.rank = run.rank AND ready.run = run.id
        RETURNING ready.run
    )
    SELECT array_agg(run) INTO popped FROM gone;
    WITH gone AS (
        DELETE FROM run WHERE run.id = ANY (older) AND (run.state IN (0, 2) OR run.id = ANY (popped))
        RETURNING run.id, run.job, run.scheduled_at, run.due_at, run.tenant, run.spec, run.attempt
    )
    INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
    SELECT id, job, scheduled_at, due_at, clock_timestamp(), tenant, spec, attempt, 0, 6, 'a newer run took its place'
      FROM gone;
    IF EXISTS (SELECT FROM run WHERE run.id = ANY (older)) THEN
        WITH held AS MATERIALIZED (
            SELECT run.id, claim.worker
              FROM claim CROSS JOIN LATERAL unnest(claim.runs) AS held(run)
              JOIN run ON run.id = held.run AND run.fence < claim.id
             WHERE held.run = ANY (older)
             ORDER BY run.id FOR NO KEY UPDATE OF run
        )
        UPDATE run SET cancel_asked = coalesce(run.cancel_asked, clock_timestamp()), recall = held.worker
          FROM held WHERE run.id = held.id;
    END IF;
    RETURN vacate(older, locked);
END $$;

-- Lets these runs in, which are tied, blocked and due, in the transaction that wrote them or made them so: whoever is
-- acknowledged first stands before whoever comes later. Returns the runs whose turn it is; the others stay blocked until
-- they are called. Nobody is waited for: a line that another one has locked is looked after by whoever promotes next.
CREATE FUNCTION let_in(ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
DECLARE
    given    record;
    wanted   bigint[];
    locked   bigint[];
    winners  bigint[] := '{}';
BEGIN
    SELECT * INTO given FROM take_seats(ids);
    IF given.newer IS NOT NULL THEN
        winners := supersede(given.newer);
    END IF;
    IF given.seated < cardinality(ids) THEN
        -- The others have been here before: back in line, or, if they kept all their seats, at the goal.
        UPDATE seat SET state = 1, at = back.due_at
          FROM (SELECT s.run, run.due_at, min(s.line) FILTER (WHERE s.state = 0) AS line
                  FROM unnest(ids) AS x(id) JOIN run ON run.id = x.id JOIN seat s ON s.run = x.id
                 GROUP BY s.run, run.due_at HAVING bool_and(s.state <> 1)) AS back
         WHERE seat.run = back.run AND seat.line = back.line;
        winners := winners || ARRAY(SELECT id FROM unnest(ids) AS x(id)
                                     WHERE NOT EXISTS (SELECT FROM seat WHERE seat.run = x.id AND seat.state < 2));
    END IF;
    wanted := ARRAY(SELECT DISTINCT slot FROM seat WHERE run = ANY (ids) AND state < 2);
    locked := ARRAY(SELECT id FROM slot WHERE id = ANY (wanted) ORDER BY id FOR UPDATE SKIP LOCKED);
    IF cardinality(locked) < cardinality(wanted) THEN
        INSERT INTO knock (slot)
        SELECT DISTINCT slot FROM seat WHERE run = ANY (ids) AND state BETWEEN 1 AND 1 AND slot NOT IN (SELECT unnest(locked));
    END IF;
    IF given.slots IS NOT NULL THEN
        UPDATE slot SET capacity = x.capacity FROM unnest(given.slots, given.capacities) AS x(slot, capacity)
         WHERE slot.id = x.slot AND slot.id IN (SELECT unnest(locked));
    END IF;
    RETURN winners || hand_over(locked);
END $$;

-- The other seam: whoever writes runs that are to be let in calls this. Returns the lanes in which something became ready.
CREATE FUNCTION enter(ids bigint[]) RETURNS integer[]
    LANGUAGE plpgsql AS $$
BEGIN
    RETURN make_ready(let_in(ids));
END $$;

-- Looks after lines at which somebody knocked; the lanes in which something became ready.
CREATE FUNCTION answer_knocks(most integer) RETURNS integer[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    slots bigint[];
BEGIN
    WITH heard AS (
        DELETE FROM knock WHERE ctid = ANY (ARRAY(SELECT ctid FROM knock LIMIT most FOR UPDATE SKIP LOCKED))
        RETURNING slot
    )
    SELECT array_agg(DISTINCT slot) INTO slots FROM heard;
    slots := ARRAY(SELECT id FROM slot WHERE id = ANY (slots) ORDER BY id FOR UPDATE);
    RETURN make_ready(hand_over(slots));
END $$;

-- A job that was paused goes on: its runs that stood in a line, or hold seats, are back in line before anybody else can
-- join it. The job is locked. Those that hold all their seats are left to promote, as those that have none.
CREATE FUNCTION line_up_again(job_id bigint) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
    WITH back AS MATERIALIZED (
        SELECT s.run, min(s.line) AS line
          FROM run JOIN seat s ON s.run = run.id AND s.state < 1
         WHERE run.job = job_id AND run.tied AND run.state = 2 AND run.due_at <= clock_timestamp()
           AND NOT EXISTS (SELECT FROM seat WHERE seat.run = run.id AND seat.state BETWEEN 1 AND 1)
         GROUP BY s.run
    ), lined AS (
        UPDATE seat SET state = 1 FROM back WHERE seat.run = back.run AND seat.line = back.line RETURNING seat.slot
    )
    INSERT INTO knock (slot) SELECT DISTINCT slot FROM lined;
END $$;

-- The limits of a job have changed: they count for whoever waits, too. A limit that was taken away lets all go. The job is
-- locked.
CREATE FUNCTION relimit(job_id bigint) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM id FROM slot WHERE owner = job_id AND owner > 0 ORDER BY id FOR UPDATE;
    WITH changed AS (
        UPDATE slot SET capacity = its.capacities[slot.id & 3]
          FROM (SELECT ARRAY[CASE WHEN job.overlap > 0 THEN 1 ELSE 2147483647 END,
                             coalesce(spec.concurrency, 2147483647)] AS capacities
                  FROM job JOIN spec ON spec.id = job.spec WHERE job.id = job_id) AS its
         WHERE slot.owner = job_id AND slot.owner > 0 AND slot.capacity <> its.capacities[slot.id & 3]
        RETURNING slot.id
    )
    INSERT INTO knock (slot) SELECT id FROM changed;
END $$;

-- The same for a tenant, whose row is locked.
CREATE FUNCTION relimit_tenant(tenant_id integer) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    WITH changed AS (
        UPDATE slot SET capacity = coalesce(tenant.concurrency, 2147483647)
          FROM tenant
         WHERE tenant.id = tenant_id AND slot.id = slot_number(tenant_id, 3, 0, NULL)
           AND slot.capacity <> coalesce(tenant.concurrency, 2147483647)
        RETURNING slot.id
    )
    INSERT INTO knock (slot) SELECT id FROM changed;
END $$;

-- Removes lines that nobody has stood in for a minute, of the `most` that come after this one. First they are marked:
-- whoever finds a mark makes sure of the line before joining it, and no transaction that found none lasts that long.
CREATE FUNCTION is_deserted(slot_id bigint) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN NOT EXISTS (SELECT FROM seat WHERE seat.slot = slot_id AND seat.state = 0)
       AND NOT EXISTS (SELECT FROM seat WHERE seat.slot = slot_id AND seat.state = 1)
       AND NOT EXISTS (SELECT FROM seat WHERE seat.slot = slot_id AND seat.state = 2);
CREATE FUNCTION tidy_slots(after bigint, most integer) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    idle bigint[] := ARRAY(SELECT id FROM (SELECT id FROM slot WHERE id > after ORDER BY id LIMIT most) AS page
                            WHERE is_deserted(page.id));
BEGIN
    idle := ARRAY(SELECT id FROM slot WHERE id = ANY (idle) ORDER BY id FOR UPDATE SKIP LOCKED);
    -- A later statement, as ever: somebody may have come in before the lock.
    DELETE FROM slot WHERE id = ANY (idle) AND idle_since < clock_timestamp() - interval '1 minute' AND is_deserted(id);
    UPDATE slot SET idle_since = clock_timestamp() WHERE id = ANY (idle) AND idle_since IS NULL;
END $$;

-- As before (see the fourteenth migration), with one more column.
DROP FUNCTION claim_when_ready;
CREATE FUNCTION claim_when_ready(
    worker bigint, number bigint, lanes integer[], marks bigint[], most integer, portions integer[], patience interval
) RETURNS TABLE (
    fence bigint, "position" integer, id bigint, rank bigint, tenant integer, spec integer, job bigint,
    attempt smallint, deaths smallint, scheduled_at timestamptz, target bytea, payload bytea, forgiven smallint, tied boolean
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
       run.attempt, run.deaths, run.scheduled_at, run.target, run.payload, run.forgiven, run.tied
  FROM claimed CROSS JOIN LATERAL unnest(claimed.runs) WITH ORDINALITY AS taken(run, position)
  JOIN run ON run.id = taken.run;
END $$;

-- As before (see the ninth migration), but a run under a limit goes by way of `outbox` in any case: which of the others it
-- counts together with is found out from its payload, which only a process can read.
CREATE OR REPLACE FUNCTION submit(
    caller text, proof bytea, spec bytea, payload bytea, target bytea, due_at timestamptz, delay interval,
    key text, fingerprint bytea
) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = foliot, pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    owner   integer := (SELECT tenant FROM api_key WHERE id = caller AND digest = proof AND revoked_at IS NULL);
    at      timestamptz := clock_timestamp();
    due     timestamptz := coalesce(submit.due_at, at + submit.delay, at);
    new_id  bigint := first_of_block(nextval('id_block'), at);
    known   integer;
    first   idempotency;
BEGIN
    IF owner IS NULL THEN
        RAISE EXCEPTION 'the API key % is not known here', caller
              USING ERRCODE = 'invalid_authorization_specification',
                    HINT = 'is this the database of the Foliot that the key belongs to?';
    END IF;
    IF length(submit.payload) > 262144 THEN
        RAISE EXCEPTION 'the payload is longer than 262,144 bytes' USING ERRCODE = 'program_limit_exceeded';
    END IF;
    IF submit.key IS NOT NULL THEN
        PERFORM FROM remember(ARRAY[owner], ARRAY[submit.key], ARRAY[submit.fingerprint],
                              ARRAY[convert_to(format('{"runId":"run_%s"}', id_text(new_id)), 'UTF8')]);
        IF NOT FOUND THEN
            SELECT * INTO STRICT first FROM idempotency WHERE tenant = owner AND key = submit.key;
            IF first.fingerprint <> submit.fingerprint THEN
                RAISE EXCEPTION 'the idempotency key was used for a different request'
                      USING ERRCODE = 'invalid_parameter_value', HINT = 'use a new key for a new request';
            END IF;
            RETURN convert_from(first.answer, 'UTF8')::json ->> 'runId';
        END IF;
    END IF;
    SELECT id INTO known FROM spec WHERE tenant = owner AND digest = sha256(submit.spec) AND concurrency IS NULL;
    IF known IS NULL THEN
        INSERT INTO outbox (id, tenant, body, due_at, target, payload)
        VALUES (new_id, owner, submit.spec, due, submit.target, submit.payload);
    ELSIF due <= at + interval '1 minute' THEN
        INSERT INTO run (id, tenant, spec, scheduled_at, due_at, state, target, payload)
        VALUES (new_id, owner, known, due, due, 0, submit.target, submit.payload);
    ELSE
        INSERT INTO timer (id, tenant, spec, scheduled_at, due_at, target, payload)
        VALUES (new_id, owner, known, due, due, submit.target, submit.payload);
    END IF;
    RETURN 'run_' || id_text(new_id);
END $$;

-- As before (see the second migration), with one more column; and a job none of whose runs goes, because one must wait
-- for something other than time, is `blocked`.
CREATE OR REPLACE VIEW job_view AS
SELECT job.id, job.tenant, job.name, job.key, job.spec, job.kind, job.gate, job.exclusive, job.schedule, job.run,
       job.timing, job.labels, job.payload, job.version, job.created_at, job.updated_at, spec.body AS spec_body,
       schedule.key AS schedule_key, schedule.next_at, owned.after, nullif(owned.until, 'infinity') AS until,
       last.run AS last_run, last.state AS last_state, last.scheduled_at AS last_scheduled_at,
       last.started_at AS last_started_at, last.finished_at AS last_finished_at, last.error AS last_error,
       CASE WHEN job.gate = 2 THEN 'cancelled'
            WHEN ended.state = 4 THEN 'completed'
            WHEN ended.state = 6 THEN 'cancelled'
            WHEN ended.state IS NOT NULL THEN 'failed'
            WHEN going.is_running THEN 'running'
            WHEN job.gate = 1 THEN 'paused'
            WHEN EXISTS (SELECT FROM run WHERE run.job = job.id AND run.state = 2) THEN 'blocked'
            WHEN job.kind = 2 AND coalesce(owned.until, '-infinity') < clock_timestamp() THEN 'completed'
            ELSE 'pending' END AS status, job.overlap
  FROM job
  JOIN spec ON spec.id = job.spec
  LEFT JOIN schedule ON schedule.id = job.schedule
  LEFT JOIN LATERAL (SELECT s.after, s.until FROM subscription s
                      WHERE s.job = job.id AND s.schedule = job.schedule ORDER BY s.after DESC LIMIT 1) AS owned ON true
  LEFT JOIN LATERAL (SELECT h.run, h.state, h.scheduled_at, h.started_at, h.finished_at, h.error FROM history h
                      WHERE h.job = job.id AND h.state > 3 ORDER BY h.run DESC, h.finished_at DESC LIMIT 1) AS last ON true
  LEFT JOIN LATERAL (SELECT h.state FROM history h WHERE h.job = job.id AND h.run = job.run AND h.state > 3
                      ORDER BY h.finished_at DESC LIMIT 1) AS ended ON true
 CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM live_run r WHERE r.job = job.id AND r.state = 3) AS is_running) AS going;
