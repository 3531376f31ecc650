-- The second wall without gaps: the role that answers requests has what it needs and no more.

-- What attempts say of themselves is their tenant's, also when the run is over. Those that write it know whose it is; of
-- runs that ended before this, it is not shown any more.
ALTER TABLE progress ADD COLUMN tenant integer;
UPDATE progress SET tenant = run.tenant FROM run WHERE run.id = progress.run;
UPDATE progress SET tenant = letter.tenant FROM dead_letter AS letter WHERE letter.id = progress.run;

-- What a tenant's calls are signed with. In the role that answers requests: of the tenant that is acted for, or nothing.
CREATE FUNCTION signing_key(owner integer) RETURNS bytea
    LANGUAGE sql STABLE SECURITY DEFINER
    RETURN CASE WHEN current_setting('role') <> 'foliot_api'
                  OR owner = nullif(current_setting('foliot.tenant', true), '')::integer
                THEN derived_key('calls', owner) END;
REVOKE ALL ON FUNCTION signing_key(integer) FROM PUBLIC;

-- As before, but: what everything is signed with is not the role's to read, nor are checkpoints, which only workers need;
-- and to the audit trail and the tenants' data keys it may add, and not change them. Takes away what was given before.
CREATE OR REPLACE FUNCTION guard_tables() RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    found    record;
    own      text := '(SELECT nullif(current_setting(''foliot.tenant'', true), '''')::integer)';
    closed   text[] := '{migration,api_key,seal,checkpoint,audit_chain,audit_checkpoint}';
    growing  text[] := '{audit,data_key,canary}';
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'foliot_api') THEN
        RETURN;
    END IF;
    IF NOT pg_has_role(current_user, 'foliot_api', 'MEMBER') THEN
        EXECUTE format('GRANT foliot_api TO %I', current_user);
    END IF;
    GRANT USAGE ON SCHEMA foliot TO foliot_api;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA foliot TO foliot_api;
    GRANT EXECUTE ON FUNCTION signing_key(integer) TO foliot_api;
    FOR found IN
        SELECT c.oid::regclass AS name, c.relname, c.relkind = 'v' AS is_view, c.relrowsecurity AS is_guarded,
               'security_invoker=true' = ANY (coalesce(c.reloptions, '{}')) AS asks_as_caller,
               CASE WHEN c.relname = 'tenant' THEN 'id' ELSE a.attname END AS owner
          FROM pg_class c
          LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped
         WHERE c.relnamespace = 'foliot'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
    LOOP
        IF found.relname = ANY (closed) THEN
            EXECUTE format('REVOKE ALL ON %s FROM foliot_api', found.name);
        ELSIF found.relname = ANY (growing) THEN
            EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON %s FROM foliot_api', found.name);
            EXECUTE format('GRANT SELECT, INSERT ON %s TO foliot_api', found.name);
        ELSE
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO foliot_api', found.name);
        END IF;
        IF found.is_view AND NOT found.asks_as_caller THEN
            EXECUTE format('ALTER VIEW %s SET (security_invoker = true)', found.name);
        ELSIF NOT found.is_view AND NOT found.is_guarded AND found.owner IS NOT NULL AND found.relname <> 'api_key' THEN
            EXECUTE format('CREATE POLICY own ON %s TO foliot_api USING (%I = %s)', found.name, found.owner, own);
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', found.name);
        END IF;
    END LOOP;
EXCEPTION
    WHEN insufficient_privilege THEN RAISE NOTICE 'the role foliot_api is not ours to use: %', SQLERRM;
END $$;
SELECT guard_tables();
