-- The audit trail: what was changed, and what was denied. Written in the transaction of the change it tells of; sealed
-- later, so that writers of one tenant do not wait for each other.
-- `tenant` 0: attempts of nobody known. `before` and `after` are JSON as it was written: what is sealed is these bytes.
-- `position`, `hash`: the place in the tenant's chain, once it is sealed (domain/audit.py).
CREATE TABLE audit (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant    integer NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor     text NOT NULL,
    key       text,
    ip        text,
    request   text,
    action    text NOT NULL,
    subject   text,
    outcome   text NOT NULL CHECK (outcome IN ('done', 'denied')),
    before    text,
    after     text,
    position  bigint CHECK (position > 0),
    hash      bytea CHECK (length(hash) = 32),
    CHECK ((position IS NULL) = (hash IS NULL))
);
-- No fork: a place in a chain is taken once, whoever seals.
CREATE UNIQUE INDEX audit_place ON audit (tenant, position) WHERE position IS NOT NULL;
CREATE INDEX audit_unsealed ON audit (tenant, id) WHERE position IS NULL;
CREATE INDEX audit_newest ON audit (tenant, id);
CREATE INDEX audit_subject ON audit (tenant, subject, id) WHERE subject IS NOT NULL;

-- The head of each chain. `marked`: how much of it the checkpoints outside of the database hold.
CREATE TABLE audit_chain (
    tenant    integer PRIMARY KEY,
    position  bigint NOT NULL DEFAULT 0,
    hash      bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    marked    bigint NOT NULL DEFAULT 0
);

CREATE TABLE audit_checkpoint (
    number  bigint PRIMARY KEY CHECK (number > 0),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    body    text NOT NULL
);

-- Nobody changes what was written, whatever role it has been granted. Sealing is no change: it happens once, and touches
-- nothing that was said. The role that answers requests only adds to the trail: it neither seals nor signs.
CREATE FUNCTION audit_stays() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'audit' AND TG_OP = 'INSERT' THEN
        IF NEW.position IS NULL THEN
            RETURN NEW;
        END IF;
    ELSIF TG_TABLE_NAME = 'audit' AND TG_OP = 'UPDATE' THEN
        IF OLD.position IS NULL AND NEW.position IS NOT NULL AND current_user <> 'foliot_api'
           AND to_jsonb(NEW) - '{position,hash}'::text[] = to_jsonb(OLD) - '{position,hash}'::text[] THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit trail is written once' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE FUNCTION audit_is_not_theirs() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'foliot_api' THEN
        RAISE EXCEPTION 'who answers requests does not seal them' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER not_theirs AFTER INSERT OR UPDATE OR DELETE ON audit_chain EXECUTE FUNCTION audit_is_not_theirs();
CREATE TRIGGER not_theirs AFTER INSERT ON audit_checkpoint EXECUTE FUNCTION audit_is_not_theirs();
CREATE TRIGGER stays BEFORE INSERT OR UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_stays();
CREATE TRIGGER stays_whole BEFORE TRUNCATE ON audit EXECUTE FUNCTION audit_stays();
CREATE TRIGGER stays BEFORE UPDATE OR DELETE ON audit_checkpoint FOR EACH ROW EXECUTE FUNCTION audit_stays();
CREATE TRIGGER stays_whole BEFORE TRUNCATE ON audit_checkpoint EXECUTE FUNCTION audit_stays();
