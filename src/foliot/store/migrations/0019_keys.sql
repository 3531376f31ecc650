-- Keys that may do some things and not others, for a while, and of which it is known when they were used.

-- `scopes` narrow what the role may do; null leaves it all. Which scopes a role has is said by domain/access.py. Keys of
-- before could do everything in their tenant and keep that; what concerns all tenants is the operators' from now on.
-- `place`: of one name two keys are there at most, so that one can take over from the other. Those of before have none.
ALTER TABLE api_key
    ADD COLUMN role          text NOT NULL DEFAULT 'admin'
                             CHECK (role IN ('worker', 'viewer', 'editor', 'admin', 'operator')),
    ADD COLUMN scopes        text[],
    ADD COLUMN expires_at    timestamptz,
    ADD COLUMN last_used_at  timestamptz,
    ADD COLUMN place         smallint CHECK (place IN (1, 2));
CREATE UNIQUE INDEX api_key_place ON api_key (tenant, label, place) WHERE revoked_at IS NULL;
CREATE INDEX api_key_of_tenant ON api_key (tenant, created_at, id);

-- Whose key this is, if it may hand in runs at this moment. `submit` asks, in the middle of its caller's transaction.
CREATE FUNCTION may_submit(caller text, proof bytea) RETURNS integer
    LANGUAGE sql STABLE
    RETURN (SELECT tenant FROM api_key
             WHERE id = caller AND digest = proof AND revoked_at IS NULL
               AND (expires_at IS NULL OR expires_at > clock_timestamp())
               AND role IN ('editor', 'admin', 'operator')
               AND (scopes IS NULL OR 'runs:write' = ANY (scopes)));
REVOKE ALL ON FUNCTION may_submit(text, bytea) FROM PUBLIC;

-- `submit` is as before but for the first question that it asks: the rest of its text belongs to other migrations, and
-- stays what they made of it.
DO $$
DECLARE
    before    text := pg_get_functiondef('submit(text,bytea,bytea,bytea,bytea,timestamptz,interval,text,bytea)'::regprocedure);
    question  text := '(SELECT tenant FROM api_key WHERE id = caller AND digest = proof AND revoked_at IS NULL)';
BEGIN
    IF strpos(before, question) = 0 THEN
        RAISE EXCEPTION 'the function submit does not ask for its caller as expected';
    END IF;
    EXECUTE replace(before, question, 'may_submit(caller, proof)');
END $$;

-- Row level security: the API answers one tenant at a time, in a role to which the server shows that tenant's rows only,
-- whatever a statement forgets to ask for. The processes that work for all tenants own the tables and are not bound by it.
-- Who may not make roles goes on without, and `foliot doctor` says so.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'foliot_api') THEN
        CREATE ROLE foliot_api NOLOGIN;
    END IF;
EXCEPTION
    WHEN insufficient_privilege THEN RAISE NOTICE 'the role foliot_api is missing, and this one may not make it';
    WHEN duplicate_object OR unique_violation THEN NULL;        -- made for another database of this server, just now
END $$;

-- Lets the role do its work, and binds it to its tenant in every table that has one. Done after each migration; touches
-- only what is new. Keys are no business of the role's, and leaves are reached through their table, which is guarded.
CREATE FUNCTION guard_tables() RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    found  record;
    own    text := '(SELECT nullif(current_setting(''foliot.tenant'', true), '''')::integer)';
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'foliot_api') THEN
        RETURN;
    END IF;
    IF NOT pg_has_role(current_user, 'foliot_api', 'MEMBER') THEN
        EXECUTE format('GRANT foliot_api TO %I', current_user);
    END IF;
    GRANT USAGE ON SCHEMA foliot TO foliot_api;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA foliot TO foliot_api;
    FOR found IN
        SELECT c.oid::regclass AS name, c.relname, c.relkind = 'v' AS is_view, c.relrowsecurity AS is_guarded,
               'security_invoker=true' = ANY (coalesce(c.reloptions, '{}')) AS asks_as_caller,
               CASE WHEN c.relname = 'tenant' THEN 'id' ELSE a.attname END AS owner
          FROM pg_class c
          LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped
         WHERE c.relnamespace = 'foliot'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
           AND c.relname NOT IN ('migration', 'api_key')
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO foliot_api', found.name);
        IF found.is_view AND NOT found.asks_as_caller THEN
            EXECUTE format('ALTER VIEW %s SET (security_invoker = true)', found.name);
        ELSIF NOT found.is_view AND NOT found.is_guarded AND found.owner IS NOT NULL THEN
            EXECUTE format('CREATE POLICY own ON %s TO foliot_api USING (%I = %s)', found.name, found.owner, own);
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', found.name);
        END IF;
    END LOOP;
EXCEPTION
    WHEN insufficient_privilege THEN RAISE NOTICE 'the role foliot_api is not ours to use: %', SQLERRM;
END $$;
SELECT guard_tables();
