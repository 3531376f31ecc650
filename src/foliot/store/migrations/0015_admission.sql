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
ALTER TABLE subscription ADD COLUMN limit_key bigint;
ALTER TABLE run ADD COLUMN limit_key bigint;
ALTER TABLE timer ADD COLUMN limit_key bigint;
ALTER TABLE dead_letter ADD COLUMN limit_key bigint;
-- Whether it has ties: seats in lines that others wait for. Whoever ends it or puts it off must call `lock_ties` before and
-- `untie` after, in one transaction. Null, for ordinary runs, takes no room.
ALTER TABLE run ADD COLUMN tied boolean;

-- One row per line, so that who comes and who leaves agree on the order. Its number is made from what it stands for: of
-- two lines with the same number, once in a million years, each waits for the other, and nothing worse.
DROP TABLE slot;
CREATE TABLE slot (
    id  bigint PRIMARY KEY
) WITH (fillfactor = 50);

-- state: 0 not in line (an earlier line comes first, or the job is paused), 1 in line, 2 held. In line means from `at` on.
CREATE TABLE seat (
    run       bigint NOT NULL,
    line      smallint NOT NULL CHECK (line IN (1, 2, 3)),
    slot      bigint NOT NULL,
    capacity  integer NOT NULL,
    priority  smallint NOT NULL,
    at        timestamptz NOT NULL,
    state     smallint NOT NULL CHECK (state IN (0, 1, 2)),
    PRIMARY KEY (run, line)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX seat_held ON seat (slot) WHERE state = 2;
CREATE INDEX seat_waiting ON seat (slot, priority, at, run) WHERE state = 1;

CREATE FUNCTION slot_number(tenant integer, line integer, scope bigint, key bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ('x' || left(md5(concat_ws(' ', tenant, line, scope, key)), 16))::bit(64)::bigint;

-- Puts runs that were just written into their lines, in the transaction that writes them: whoever is acknowledged first
-- stands before whoever comes later. Only tenants' lines are ordered by priority: within a limit of its own a job's runs
-- go first in, first out. Called again it changes nothing.
CREATE FUNCTION take_seats(ids bigint[]) RETURNS integer
    LANGUAGE plpgsql AS $$
DECLARE
    seated integer;
BEGIN
    WITH needed AS MATERIALIZED (
        SELECT run.id, each.line, slot_number(run.tenant, each.line, each.scope, each.key) AS slot, each.capacity,
               CASE WHEN each.line = 3 THEN spec.priority ELSE 0 END AS priority, run.due_at,
               CASE WHEN each.line = min(each.line) OVER (PARTITION BY run.id) AND run.state < 2 THEN 1 ELSE 0 END AS state
          FROM run
          JOIN spec ON spec.id = run.spec
          JOIN tenant ON tenant.id = run.tenant
          LEFT JOIN job ON job.id = run.job AND run.origin = 0
         CROSS JOIN LATERAL (VALUES
                (1, run.job, NULL::bigint, CASE WHEN job.overlap > 0 THEN 1 END),
                (2, coalesce(run.job, -spec.lane), run.limit_key, spec.concurrency),
                (3, 0, NULL, tenant.concurrency)) AS each(line, scope, key, capacity)
         WHERE run.id = ANY (ids) AND run.state <> 1 AND each.capacity IS NOT NULL
    ), lines AS (
        INSERT INTO slot (id) SELECT DISTINCT slot FROM needed ORDER BY slot ON CONFLICT DO NOTHING
    ), placed AS (
        INSERT INTO seat (run, line, slot, capacity, priority, at, state)
        SELECT id, line, slot, capacity, priority, due_at, state FROM needed
        ON CONFLICT DO NOTHING
        RETURNING run
    )
    SELECT count(DISTINCT run) INTO seated FROM placed;
    IF seated > 0 THEN
        UPDATE run SET tied = true
         WHERE id = ANY (ids) AND tied IS NULL AND EXISTS (SELECT FROM seat WHERE seat.run = run.id);
    END IF;
    RETURN seated;
END $$;

-- Who frees seats or asks for them locks the lines first, all in one statement and in order; what follows is a later
-- statement, which sees what the one before in line has done. In one statement the wake-up would be lost.
CREATE FUNCTION lock_slots(ids bigint[]) RETURNS bigint[]
    LANGUAGE sql
    RETURN ARRAY(SELECT id FROM slot WHERE id IN (SELECT slot FROM seat WHERE run = ANY (ids)) ORDER BY id FOR UPDATE);

-- Makes those of these runs ready that wait and hold all their seats; the lanes in which they are. Ranked as if they had
-- been handed in now: who waited for a limit has saved no credit against other tenants.
CREATE FUNCTION make_ready(ids bigint[]) RETURNS integer[]
    LANGUAGE plpgsql AS $$
DECLARE
    lanes integer[];
BEGIN
    WITH chosen AS MATERIALIZED (
        SELECT run.id, run.tenant, spec.lane, spec.priority,
               greatest(1, 65536 / (tenant.weight * (16 >> spec.priority))) AS step
          FROM run JOIN spec ON spec.id = run.spec JOIN tenant ON tenant.id = run.tenant
         WHERE run.id = ANY (ids) AND run.state IN (0, 2)
           AND NOT EXISTS (SELECT FROM seat WHERE seat.run = run.id AND seat.state < 2)
    ), reserved AS (
        INSERT INTO flow AS f (lane, tenant, priority, last)
        SELECT lane.id, c.tenant, c.priority, lane.v + sum(c.step)
          FROM chosen c JOIN lane ON lane.id = c.lane GROUP BY 1, 2, 3, lane.v ORDER BY 1, 2, 3
        ON CONFLICT (lane, tenant, priority) DO UPDATE
           SET last = greatest(f.last, (SELECT v FROM lane WHERE id = excluded.lane))
                      + excluded.last - (SELECT v FROM lane WHERE id = excluded.lane)
        RETURNING lane, tenant, priority, last
    ), ranked AS (
        SELECT c.id, c.lane,
               r.last - c.step * (row_number() OVER (PARTITION BY c.lane, c.tenant, c.priority ORDER BY c.id DESC) - 1) AS rank
          FROM chosen c JOIN reserved r ON r.lane = c.lane AND r.tenant = c.tenant AND r.priority = c.priority
    ), admitted AS (
        UPDATE run SET state = 1, rank = ranked.rank FROM ranked WHERE run.id = ranked.id
        RETURNING run.id, run.rank, ranked.lane
    ), queued AS (
        INSERT INTO ready (lane, rank, run) SELECT lane, rank, id FROM admitted RETURNING lane
    )
    SELECT coalesce(array_agg(DISTINCT lane), '{}') INTO lanes FROM queued;
    RETURN lanes;
END $$;

-- Gives what is free in these lines, which the caller has locked, to those in front; whoever holds all its seats becomes
-- ready. Returns the lanes in which something did. How many hold a line is counted, never noted: a count cannot drift.
CREATE FUNCTION hand_over(slots bigint[]) RETURNS integer[]
    LANGUAGE plpgsql AS $$
DECLARE
    now      timestamptz := clock_timestamp();
    moved    bigint[];
    winners  bigint[] := '{}';
BEGIN
    FOR this IN 1..3 LOOP
        WITH won AS (
            UPDATE seat SET state = 2
              FROM unnest(slots) AS freed(slot)
             CROSS JOIN LATERAL (SELECT count(*) AS held FROM seat s WHERE s.slot = freed.slot AND s.state = 2) AS taken
             CROSS JOIN LATERAL (
                    SELECT s.run FROM seat s
                     WHERE s.slot = freed.slot AND s.state = 1 AND s.at <= now
                     ORDER BY s.priority, s.at, s.run
                     LIMIT greatest(0, (SELECT f.capacity FROM seat f
                                         WHERE f.slot = freed.slot AND f.state = 1 AND f.at <= now
                                         ORDER BY f.priority, f.at, f.run LIMIT 1) - taken.held)) AS first
             WHERE seat.run = first.run AND seat.line = this AND seat.slot = freed.slot
            RETURNING seat.run, seat.line
        ), onward AS (
            UPDATE seat SET state = 1 FROM won
             WHERE seat.run = won.run AND seat.state = 0
               AND seat.line = (SELECT min(s.line) FROM seat s WHERE s.run = won.run AND s.line > won.line)
            RETURNING seat.run, seat.slot
        ), elsewhere AS (
            -- Its next line is not ours to hand out: promote goes on with it.
            UPDATE run SET state = 0 FROM onward
             WHERE run.id = onward.run AND run.state = 2 AND onward.slot <> ALL (slots)
        )
        SELECT coalesce(array_agg(run), '{}') INTO moved FROM won;
        winners := winners || moved;
    END LOOP;
    RETURN CASE WHEN winners = '{}' THEN '{}' ELSE make_ready(winners) END;
END $$;

-- After something has happened to these runs, whose lines (`slots`) were locked before it did: those that are gone leave
-- their seats; those that wait for their time leave the ones that others may have meanwhile. Under a limit of 1 the seat
-- is kept, so that nobody overtakes; not a tenant's, whose other jobs have nothing to do with it. Those of a paused job
-- leave the line. What is free is handed over.
CREATE FUNCTION vacate(ids bigint[], slots bigint[]) RETURNS integer[]
    LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM seat WHERE seat.run = ANY (ids) AND NOT EXISTS (SELECT FROM run WHERE run.id = seat.run);
    WITH staying AS MATERIALIZED (
        SELECT run.id, run.due_at, coalesce(job.gate, 0) > 0 AS paused,
               (SELECT min(s.line) FROM seat s
                 WHERE s.run = run.id AND NOT (s.state = 2 AND s.capacity = 1 AND s.line < 3)) AS next
          FROM run LEFT JOIN job ON job.id = run.job
         WHERE run.id = ANY (ids) AND run.state <> 1
    )
    UPDATE seat SET at = staying.due_at,
                    state = CASE WHEN staying.paused OR seat.line > staying.next THEN 0
                                 WHEN seat.line = staying.next THEN 1 ELSE seat.state END
      FROM staying WHERE seat.run = staying.id;
    RETURN hand_over(slots);
END $$;

-- Those of these due runs that are in a line: who may run becomes ready, the others are blocked from here on. A run that
-- kept all its seats while it waited needs no turn; one whose job was paused is back in line.
CREATE FUNCTION admit(ids bigint[], slots bigint[]) RETURNS integer[]
    LANGUAGE plpgsql AS $$
DECLARE
    lanes integer[];
BEGIN
    UPDATE seat SET state = 1 FROM (
        SELECT s.run, min(s.line) AS line FROM seat s JOIN run ON run.id = s.run AND run.state = 0
         WHERE s.run = ANY (ids) GROUP BY s.run HAVING max(s.state) = 0) AS out_of_line
     WHERE seat.run = out_of_line.run AND seat.line = out_of_line.line;
    lanes := hand_over(slots) || make_ready(ARRAY(SELECT id FROM run WHERE id = ANY (ids) AND state = 0));
    UPDATE run SET state = 2
     WHERE id = ANY (ids) AND state = 0 AND EXISTS (SELECT FROM seat WHERE seat.run = run.id AND seat.state < 2);
    RETURN lanes;
END $$;

-- The seam: whoever ends runs that are tied, or puts them off, does three things in one transaction: `lock_ties`, the deed
-- itself, `untie`. Each is a statement of its own: what follows a lock must see what the one before has done.
CREATE FUNCTION lock_ties(ids bigint[]) RETURNS bigint[]
    LANGUAGE sql
    RETURN lock_slots(ids);

-- Returns the lanes in which something became ready.
CREATE FUNCTION untie(ids bigint[], locked bigint[]) RETURNS integer[]
    LANGUAGE sql
    RETURN vacate(ids, locked);

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
