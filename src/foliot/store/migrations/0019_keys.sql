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
