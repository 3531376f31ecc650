-- What belongs to a job about time: what happens to instants that come up late, its own place in a jitter window, and
-- how many runs it may still have. A schedule is shared, so it keeps only bounds over all of them.

ALTER TABLE job
    ADD COLUMN runs_left  integer CHECK (runs_left >= 0),       -- of maxRuns; null without
    ADD COLUMN paused_at  timestamptz;                          -- since when the gate is paused

ALTER TABLE subscription
    ADD COLUMN catch_up         smallint NOT NULL DEFAULT 1 CHECK (catch_up IN (0, 1, 2)),  -- none, latest, all
    ADD COLUMN catch_up_window  integer NOT NULL DEFAULT 3600,  -- seconds
    ADD COLUMN phase            integer NOT NULL DEFAULT 0 CHECK (phase >= 0),  -- milliseconds after the instant
    ADD COLUMN counted          boolean NOT NULL DEFAULT false; -- the job's runs_left goes down with every run
-- Those that end: whose last instant lies where must be known when a range of instants is late.
CREATE INDEX subscription_ending ON subscription (schedule, until) WHERE until < 'infinity';

-- `paused` stretches are owned by nobody: their instants are skipped, and this row says so for all of them.
ALTER TABLE past_subscription
    ADD COLUMN catch_up         smallint NOT NULL DEFAULT 1,
    ADD COLUMN catch_up_window  integer NOT NULL DEFAULT 3600,
    ADD COLUMN paused           boolean NOT NULL DEFAULT false;

-- The longest windows, in seconds, that any of its jobs has asked for: they only grow, because a bound that is too
-- large costs a look, and one that is too small an instant.
ALTER TABLE schedule
    ADD COLUMN latest_within  integer NOT NULL DEFAULT 3600,
    ADD COLUMN all_within     integer NOT NULL DEFAULT 0;

-- `following` is the next instant after this one. Of an instant that came up late `late_through` is how far the
-- lateness went: whatever lies behind it was on time.
ALTER TABLE firing
    ADD COLUMN following     timestamptz,
    ADD COLUMN late_through  timestamptz,
    ADD COLUMN passed_over   integer NOT NULL DEFAULT 0;        -- jobs that did not want it so late
CREATE INDEX firing_fresh ON firing (at, schedule) WHERE closed_at IS NULL AND late_through IS NULL;
CREATE INDEX firing_late ON firing (at, schedule) WHERE closed_at IS NULL AND late_through IS NOT NULL;
CREATE INDEX firing_gap ON firing (at) WHERE missed OR late_through IS NOT NULL;
CREATE INDEX firing_age ON firing (closed_at) WHERE closed_at IS NOT NULL;
DROP INDEX firing_open;

-- Whether a job wants an instant that is late. `latest` is the last one of this definition: nothing of it that is late
-- follows.
CREATE FUNCTION catches_up(mode smallint, within integer, until timestamptz, at timestamptz, opened_at timestamptz,
                           following timestamptz, late_through timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN late_through IS NULL
        OR (extract(epoch FROM opened_at - at) <= within
            AND (mode = 2 OR (mode = 1 AND (following IS NULL OR following > least(late_through, until)))));
CREATE INDEX past_subscription_of_schedule ON past_subscription (schedule, until);
