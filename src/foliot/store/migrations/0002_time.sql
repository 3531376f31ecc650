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
-- Those that nobody has begun come first: a job on a schedule of its own does not wait for a hundred thousand others.
CREATE INDEX firing_fresh ON firing ((done_through > 0), at, schedule) WHERE closed_at IS NULL AND late_through IS NULL;
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

-- A timer knows whether its job is paused, so that promote need not ask: to lock the job's row instead dirtied a page of
-- `job` for each run that fell due.
ALTER TABLE timer ADD COLUMN held boolean NOT NULL DEFAULT false;

-- How a one-time job ended is told by the history of its only run: to write it into the job as well took as long as all
-- the rest of a settle, with ten million jobs.
DROP VIEW job_view;
ALTER TABLE job DROP COLUMN ended_state;
CREATE VIEW job_view AS
SELECT job.id, job.tenant, job.name, job.key, job.spec, job.kind, job.gate, job.exclusive, job.schedule, job.run,
       job.timing, job.labels, job.payload, job.version, job.created_at, job.updated_at, spec.body AS spec_body,
       schedule.key AS schedule_key, schedule.next_at, owned.after, nullif(owned.until, 'infinity') AS until,
       last.run AS last_run, last.state AS last_state, last.scheduled_at AS last_scheduled_at,
       last.started_at AS last_started_at, last.finished_at AS last_finished_at, last.error AS last_error,
       CASE WHEN job.gate = 2 THEN 'cancelled'
            WHEN ended.state = 4 THEN 'completed'
            WHEN ended.state = 6 THEN 'cancelled'
            WHEN ended.state IS NOT NULL THEN 'failed'
            WHEN going.is_running THEN 'running'
            WHEN job.gate = 1 THEN 'paused'
            WHEN job.kind = 2 AND coalesce(owned.until, '-infinity') < clock_timestamp() THEN 'completed'
            ELSE 'pending' END AS status
  FROM job
  JOIN spec ON spec.id = job.spec
  LEFT JOIN schedule ON schedule.id = job.schedule
  LEFT JOIN LATERAL (SELECT s.after, s.until FROM subscription s
                      WHERE s.job = job.id AND s.schedule = job.schedule ORDER BY s.after DESC LIMIT 1) AS owned ON true
  LEFT JOIN LATERAL (SELECT h.run, h.state, h.scheduled_at, h.started_at, h.finished_at, h.error FROM history h
                      WHERE h.job = job.id AND h.state > 3 ORDER BY h.run DESC, h.finished_at DESC LIMIT 1) AS last ON true
  LEFT JOIN LATERAL (SELECT h.state FROM history h WHERE h.job = job.id AND h.run = job.run AND h.state > 3
                      ORDER BY h.finished_at DESC LIMIT 1) AS ended ON true
 CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM live_run r WHERE r.job = job.id AND r.state = 3) AS is_running) AS going;
