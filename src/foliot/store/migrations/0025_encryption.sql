-- What tenants hand in and what becomes of it, sealed (docs/why/0039-payloads-sealed-where-they-belong.md); and secrets.

-- Which of its data keys seals what a tenant writes; null for most, who write as it is.
ALTER TABLE tenant ADD COLUMN sealed_with integer;

-- Keys of tenants, each wrapped by the master key of that name. None is ever removed: what it sealed may lie anywhere.
CREATE TABLE data_key (
    tenant      integer NOT NULL REFERENCES tenant,
    version     integer NOT NULL CHECK (version > 0),
    master      text NOT NULL,
    wrapped     bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, version)
);
ALTER TABLE tenant ADD CONSTRAINT tenant_sealed_with FOREIGN KEY (id, sealed_with) REFERENCES data_key (tenant, version);

-- What is written and never read, but by whoever runs what refers to it. Always sealed: nothing else can be stored.
CREATE TABLE secret (
    tenant      integer NOT NULL REFERENCES tenant,
    name        text NOT NULL CHECK (name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'),
    version     integer NOT NULL DEFAULT 1 CHECK (version > 0),
    value       bytea NOT NULL CHECK (substring(value FROM 1 FOR 2) = '\x0001'),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, name)
);

-- A known text that the master key has wrapped: a process that cannot unwrap it has another key, or none, and does not
-- start. It is there from the first data key on.
CREATE TABLE canary (
    alone    boolean PRIMARY KEY DEFAULT true CHECK (alone),
    master   text NOT NULL,
    wrapped  bytea NOT NULL
);

-- What is sealed is a little longer.
ALTER TABLE checkpoint DROP CONSTRAINT checkpoint_state_check,
                       ADD CONSTRAINT checkpoint_state_check CHECK (length(state) <= 262144 + 64);

-- kind 4: what a tenant has stored is sealed anew, with its present key. It walks over tables instead of dead letters.
ALTER TABLE operation DROP CONSTRAINT operation_kind_check,
                      ADD CONSTRAINT operation_kind_check CHECK (kind IN (1, 2, 3, 4));

-- What is sealed anew is no new definition: an edit has a version of its own.
DROP TRIGGER keep_version ON job;
CREATE TRIGGER keep_version AFTER UPDATE ON job FOR EACH ROW
    WHEN (OLD.version <> NEW.version
          AND (OLD.name, OLD.spec, OLD.kind, OLD.exclusive, OLD.overlap, OLD.timing, OLD.labels, OLD.payload)
              IS DISTINCT FROM
              (NEW.name, NEW.spec, NEW.kind, NEW.exclusive, NEW.overlap, NEW.timing, NEW.labels, NEW.payload))
    EXECUTE FUNCTION keep_version();

-- Nobody finds what is sealed by looking for what is in it.
CREATE OR REPLACE FUNCTION is_about(sought text, lane integer, target bytea, error text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN position(lower(sought) IN lower(error)) > 0
        OR CASE WHEN substring(target FROM 1 FOR 1) = '\x00' THEN false
                ELSE position(lower(sought) IN lower(convert_from(target, 'UTF8'))) > 0 END
        OR position(lower(sought) IN (SELECT lower(l.handler_group) FROM lane l WHERE l.id = lane)) > 0;

-- Whoever calls this from the middle of its own transaction has no key to seal with. The rest of the function's text
-- belongs to other migrations, and stays what they made of it.
DO $$
DECLARE
    before  text := pg_get_functiondef('submit(text,bytea,bytea,bytea,bytea,timestamptz,interval,text,bytea)'::regprocedure);
    place   text := 'IF length(submit.payload) > 262144 THEN';
BEGIN
    IF strpos(before, place) = 0 THEN
        RAISE EXCEPTION 'the function submit does not look at its payload as expected';
    END IF;
    EXECUTE replace(before, place, 'IF (SELECT sealed_with FROM tenant WHERE id = owner) IS NOT NULL THEN
        RAISE EXCEPTION ''the payloads of this tenant are encrypted, and a transaction of your own has no key for it''
              USING ERRCODE = ''feature_not_supported'', HINT = ''hand the run in through the API, or switch encryption off'';
    END IF;
    ' || place);
END $$;
SELECT guard_tables();
