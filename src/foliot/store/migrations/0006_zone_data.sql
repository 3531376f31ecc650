-- Which editions of the time zone database schedules have been reckoned with. Governments change their minds: a newer
-- edition moves fires that an older one put elsewhere.
CREATE TABLE zone_data (
    version  text PRIMARY KEY CHECK (version ~ '^\d{4}[a-z]+$'),
    since    timestamptz NOT NULL DEFAULT clock_timestamp(),
    moved    integer NOT NULL DEFAULT 0 CHECK (moved >= 0)      -- schedules whose next fire was put elsewhere
);
