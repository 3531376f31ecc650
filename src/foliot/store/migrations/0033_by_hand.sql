-- A run by hand may be for the very instant of a schedule (`runAt`), and history does not keep where a run came from: the
-- ledger took it for the run of that instant, and an instant that was missed was told as fired. So what is asked for by
-- hand is noted, of jobs that have instants. Noted by the tables themselves: there are four ways to hand such a run in.
-- A replayed run has an origin of its own too, and is what it was.
CREATE TABLE by_hand (
    tenant  integer NOT NULL,
    job     bigint NOT NULL,
    at      timestamptz NOT NULL,
    run     bigint NOT NULL,
    PRIMARY KEY (job, at, run)
);
CREATE INDEX by_hand_age ON by_hand (at);

CREATE FUNCTION note_by_hand() RETURNS trigger
    LANGUAGE plpgsql SET search_path = foliot AS $$
BEGIN
    INSERT INTO by_hand (tenant, job, at, run)
    SELECT job.tenant, job.id, NEW.scheduled_at, NEW.id FROM job WHERE job.id = NEW.job AND job.kind > 0
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_by_hand AFTER INSERT ON run
    FOR EACH ROW WHEN (NEW.origin = NEW.id AND NEW.forgiven IS NULL) EXECUTE FUNCTION note_by_hand();
CREATE TRIGGER note_by_hand AFTER INSERT ON timer
    FOR EACH ROW WHEN (NEW.origin = NEW.id) EXECUTE FUNCTION note_by_hand();
