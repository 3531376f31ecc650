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
