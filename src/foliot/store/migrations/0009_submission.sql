-- Idempotency keys in daily leaves that are dropped whole, and submission inside the caller's own transaction.

-- The leaves of `idempotency`. One of them is open; the one after it is made ahead, those before it are looked into and
-- take no new keys.
CREATE TABLE key_leaf (
    leaf       integer PRIMARY KEY,
    opened_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    closed_at  timestamptz
);
CREATE UNIQUE INDEX key_leaf_open ON key_leaf ((true)) WHERE closed_at IS NULL;

ALTER TABLE idempotency RENAME TO idempotency_whole;
ALTER TABLE idempotency_whole RENAME CONSTRAINT idempotency_pkey TO idempotency_whole_pkey;

-- First answers, so that the same key creates once.
CREATE TABLE idempotency (
    tenant       integer NOT NULL,
    key          text NOT NULL,
    leaf         integer NOT NULL,
    fingerprint  bytea NOT NULL,
    answer       bytea NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, key, leaf)
) PARTITION BY LIST (leaf);

-- CREATE and ATTACH, because CREATE ... PARTITION OF would lock out every call with a key meanwhile.
CREATE FUNCTION make_key_leaf(number integer) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    leaf  text := 'idempotency_' || number;
BEGIN
    IF to_regclass(leaf) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (LIKE idempotency INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', leaf);
        EXECUTE format('ALTER TABLE idempotency ATTACH PARTITION %I FOR VALUES IN (%s)', leaf, number);
    END IF;
END $$;
SELECT make_key_leaf(1), make_key_leaf(2);
INSERT INTO key_leaf (leaf) VALUES (1);
INSERT INTO idempotency (tenant, key, leaf, fingerprint, answer, created_at)
SELECT tenant, key, 1, fingerprint, answer, created_at FROM idempotency_whole;
DROP TABLE idempotency_whole;

-- Keeps these first answers, except those of keys that had one already; returns the keys that are new. A rival in
-- mid-transaction is waited for.
--
-- A unique index reaches no further than its leaf, so two calls with one key must never be let into two leaves:
-- 1. Which leaf is open is said by `key_leaf` and not by a clock. Whoever uses a key first takes the table lock ROW SHARE
--    on `key_leaf`, reads in a later statement which leaf is open, and keeps the lock to the end of the transaction.
-- 2. Whoever turns to the next leaf takes EXCLUSIVE, which is given when no such transaction is left, and makes new ones
--    wait. So all who hold the lock together see the same open leaf, and meet at its unique index.
-- 3. When leaf n is open, every transaction that wrote into a leaf before n has ended. What it kept is seen by the
--    statement below, whose snapshot is younger than the lock (READ COMMITTED, which is insisted on).
-- No clock is asked, so none can be wrong: it only says when to turn, and after being set back it says so later. Table
-- locks of these modes live in memory: nothing is written for them, and callers do not wait for each other.
CREATE FUNCTION remember(tenants integer[], keys text[], fingerprints bytea[], answers bytea[])
    RETURNS TABLE (tenant integer, key text)
    LANGUAGE plpgsql
    -- The open leaf is empty in the morning and full at night: what the planner was told last is no guide.
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    open_leaf  integer;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'an idempotency key cannot be used at the isolation level %',
                        current_setting('transaction_isolation')
              USING ERRCODE = 'feature_not_supported', HINT = 'use READ COMMITTED, or leave out the key';
    END IF;
    LOCK TABLE key_leaf IN ROW SHARE MODE;
    open_leaf := (SELECT leaf FROM key_leaf WHERE closed_at IS NULL);
    -- Sorted, so that two batches with the same keys wait for each other instead of deadlocking.
    RETURN QUERY
    INSERT INTO idempotency AS i (tenant, key, leaf, fingerprint, answer)
    SELECT x.tenant, x.key, open_leaf, x.fingerprint, x.answer
      FROM unnest(tenants, keys, fingerprints, answers) AS x(tenant, key, fingerprint, answer)
     WHERE NOT EXISTS (SELECT FROM idempotency old
                        WHERE old.tenant = x.tenant AND old.key = x.key AND old.leaf < open_leaf)
     ORDER BY x.tenant, x.key
    ON CONFLICT (tenant, key, leaf) DO NOTHING
    RETURNING i.tenant, i.key;
END $$;

-- Makes the next leaf ahead and turns to it at midnight. A leaf opened by a clock that was a day or more ahead is left
-- at once, or it would stay open until the time that the clock had told.
CREATE FUNCTION turn_key_leaf() RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    latest  key_leaf;
    at      timestamptz := clock_timestamp();
BEGIN
    LOCK TABLE ONLY idempotency IN SHARE UPDATE EXCLUSIVE MODE; -- one at a time; keys are not held up by it
    SELECT * INTO STRICT latest FROM key_leaf WHERE closed_at IS NULL;
    PERFORM make_key_leaf(latest.leaf + 1);
    IF date_trunc('day', at, 'UTC') > date_trunc('day', latest.opened_at, 'UTC')
       OR latest.opened_at > at + interval '1 day' THEN
        LOCK TABLE key_leaf IN EXCLUSIVE MODE;
        at := clock_timestamp();                                -- every key of the old leaf is older now
        UPDATE key_leaf SET closed_at = at WHERE leaf = latest.leaf;
        INSERT INTO key_leaf (leaf, opened_at) VALUES (latest.leaf + 1, at);
    END IF;
END $$;

-- Drops the leaves that were closed that long ago: every key in them is older. Locks in the order of `turn_key_leaf`.
CREATE FUNCTION drop_key_leaves(life interval) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    old  integer;
BEGIN
    IF NOT EXISTS (SELECT FROM key_leaf WHERE closed_at <= clock_timestamp() - life) THEN
        RETURN;
    END IF;
    LOCK TABLE ONLY idempotency IN ACCESS EXCLUSIVE MODE;
    FOR old IN DELETE FROM key_leaf WHERE closed_at <= clock_timestamp() - life RETURNING leaf LOOP
        EXECUTE format('DROP TABLE %I', 'idempotency_' || old);
    END LOOP;
END $$;

-- Runs that were handed in inside somebody's transaction with a spec that nobody had used before. To store the spec
-- there and then would make all who use it next wait for the end of that transaction; promote does it afterwards.
CREATE TABLE outbox (
    id             bigint PRIMARY KEY,
    tenant         integer NOT NULL,
    body           bytea NOT NULL,
    due_at         timestamptz NOT NULL,
    target         bytea,
    payload        bytea NOT NULL,
    refused        text                                         -- why it cannot be run
);
CREATE INDEX outbox_waiting ON outbox (id) WHERE refused IS NULL;

-- As domain/ids.py mints them. The first one shifted too far: << and | bind alike, from the left.
CREATE OR REPLACE FUNCTION first_of_block(block bigint, at timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((floor(extract(epoch FROM at) * 1000)::bigint - 1735689600000) << 22) | ((block % 1024) << 12);

-- An id as people read it, without its prefix: the same letters as domain/ids.py writes.
CREATE FUNCTION id_text(number bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((number >> shift) & 31)::integer + 1, 1), ''
                              ORDER BY shift DESC)
              FROM generate_series(0, 60, 5) AS shift);

-- Hands in one run as part of the caller's transaction: it is there if that commits, and never was if not. Answers with
-- the run's id. Nothing is reserved and, but for a key, nothing is locked that others wait for: the run waits for its
-- time like a delayed one, and promote ranks it. `proof` is the SHA-256 of the API key whose id is `caller`; a role needs
-- no right but to call this. `spec` is the canonical body of domain/spec.py.
CREATE FUNCTION submit(
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
    SELECT id INTO known FROM spec WHERE tenant = owner AND digest = sha256(submit.spec);
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
REVOKE ALL ON FUNCTION submit(text, bytea, bytea, bytea, bytea, timestamptz, interval, text, bytea) FROM PUBLIC;
