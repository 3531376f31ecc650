-- A version for tenants, as jobs and calendars have one: who changes one can say which version was meant.
ALTER TABLE tenant ADD COLUMN version integer NOT NULL DEFAULT 1;

-- Whatever of a tenant changes, by whichever statement: columns that come later are counted too.
CREATE FUNCTION tenant_version() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(NEW) IS DISTINCT FROM to_jsonb(OLD) THEN
        NEW.version := OLD.version + 1;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER version BEFORE UPDATE ON tenant FOR EACH ROW EXECUTE FUNCTION tenant_version();

-- The definitions that a job had before the present one. Written by whoever changes one, whichever way; the last hundred
-- are kept. What only opens or closes a job, or moves it to another schedule of the same wording, is no new definition.
CREATE TABLE job_version (
    tenant      integer NOT NULL,
    job         bigint NOT NULL,
    version     integer NOT NULL,
    name        text NOT NULL,
    spec        integer NOT NULL,
    kind        smallint NOT NULL,
    exclusive   boolean NOT NULL,
    overlap     smallint NOT NULL,
    timing      jsonb NOT NULL,
    labels      jsonb NOT NULL,
    payload     bytea NOT NULL,
    parents     bigint[] NOT NULL,
    conditions  integer[] NOT NULL,
    until       timestamptz NOT NULL,                           -- then the next one took its place
    PRIMARY KEY (job, version)
);
CREATE FUNCTION keep_version() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    -- The edges are still those of before: they are written after the job.
    INSERT INTO job_version (tenant, job, version, name, spec, kind, exclusive, overlap, timing, labels, payload, parents,
                             conditions, until)
    SELECT OLD.tenant, OLD.id, OLD.version, OLD.name, OLD.spec, OLD.kind, OLD.exclusive, OLD.overlap, OLD.timing,
           OLD.labels, OLD.payload, coalesce(array_agg(d.parent ORDER BY d.place), '{}'),
           coalesce(array_agg(d.condition ORDER BY d.place), '{}'), NEW.updated_at
      FROM dependency d WHERE d.child = OLD.id AND d.until = 'infinity';
    DELETE FROM job_version
     WHERE job = OLD.id
       AND version <= (SELECT version FROM job_version WHERE job = OLD.id ORDER BY version DESC OFFSET 100 LIMIT 1);
    RETURN NULL;
END $$;
CREATE TRIGGER keep_version AFTER UPDATE ON job FOR EACH ROW
    WHEN ((OLD.name, OLD.spec, OLD.kind, OLD.exclusive, OLD.overlap, OLD.timing, OLD.labels, OLD.payload)
          IS DISTINCT FROM
          (NEW.name, NEW.spec, NEW.kind, NEW.exclusive, NEW.overlap, NEW.timing, NEW.labels, NEW.payload))
    EXECUTE FUNCTION keep_version();

-- Whether a run is about what somebody looks for: it stands in its error, its address or its function's name.
CREATE FUNCTION is_about(sought text, lane integer, target bytea, error text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN position(lower(sought) IN lower(error)) > 0
        OR position(lower(sought) IN lower(convert_from(target, 'UTF8'))) > 0
        OR position(lower(sought) IN (SELECT lower(l.handler_group) FROM lane l WHERE l.id = lane)) > 0;
