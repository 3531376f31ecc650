-- Calendars: when a tenant's jobs may run. What a calendar means is content-addressed, so that schedules that follow equal
-- calendars are one schedule, whoever owns them; what its owner wrote, with all the names, stays with the owner.

CREATE TABLE calendar_body (
    digest  text PRIMARY KEY CHECK (digest ~ '^[0-9a-f]{16}$'),
    body    jsonb NOT NULL                                      -- never changed
);

-- `followed` is the version that all its jobs follow already; a scheduler moves those that follow an older one.
CREATE TABLE calendar (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      integer NOT NULL REFERENCES tenant,
    name        text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    digest      text NOT NULL REFERENCES calendar_body,
    document    jsonb NOT NULL,                                 -- as its owner wrote it
    source      text NOT NULL CHECK (source IN ('api', 'ics')),
    version     integer NOT NULL DEFAULT 1,
    followed    integer NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant, name),
    CHECK (followed <= version)
);
CREATE INDEX calendar_behind ON calendar (id) WHERE followed < version;

-- No foreign key: cancelled jobs may outlive the calendar that they followed.
ALTER TABLE job ADD COLUMN calendar integer;
CREATE INDEX job_of_calendar ON job (calendar, id) WHERE calendar IS NOT NULL;
