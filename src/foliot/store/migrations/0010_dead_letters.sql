-- Dead letters that can be looked through, replayed and discarded, one by one or as an operation; and what kind of error
-- ended an attempt.

-- Null unless the run was replayed: then the attempts before, which count against its retries no more. Null takes no
-- room in a row that has nulls already, and runs without a job have three.
ALTER TABLE run ADD COLUMN forgiven smallint;

ALTER TABLE history ADD COLUMN error_class text;
ALTER TABLE dead_letter ADD COLUMN error_class text;
CREATE INDEX dead_letter_of_job ON dead_letter (job, id) WHERE job IS NOT NULL;
CREATE INDEX dead_letter_age ON dead_letter (died_at);
-- Narrow, so that counting them by queue need not read them.
CREATE INDEX dead_letter_of_spec ON dead_letter (spec);

-- A dead letter with what it is selected and ranked by.
CREATE VIEW letter AS
SELECT d.id, d.tenant, d.job, d.scheduled_at, d.due_at, d.died_at, d.attempt, d.error, d.error_class, d.target,
       d.payload, spec.body AS spec_body, spec.lane, spec.priority, lane.queue, lane.handler_group
  FROM dead_letter d JOIN spec ON spec.id = d.spec JOIN lane ON lane.id = spec.lane;

-- Whether a dead letter is among those that somebody means (see domain/letters.py). A class is known by its name with
-- the module or without.
CREATE FUNCTION is_meant(selection jsonb, job bigint, error_class text, error text, died_at timestamptz, queue text,
                         handler_group text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (selection->>'job' IS NULL OR job = (selection->>'job')::bigint)
       AND (selection->>'error_class' IS NULL OR error_class = selection->>'error_class'
            OR right(error_class, length(selection->>'error_class') + 1) = '.' || (selection->>'error_class'))
       AND (selection->>'text' IS NULL OR position(lower(selection->>'text') IN lower(error)) > 0)
       AND (selection->>'since' IS NULL OR died_at >= (selection->>'since')::timestamptz)
       AND (selection->>'until' IS NULL OR died_at <= (selection->>'until')::timestamptz)
       AND (selection->>'queue' IS NULL OR queue = selection->>'queue')
       AND (selection->>'handler_group' IS NULL OR handler_group = selection->>'handler_group');

-- kind: 1 back-fill, 2 replay, 3 discard. The last two walk over the dead letters of a `selection` that died before the
-- operation was made, by id: `done_through` is how far they are. They go at a pace: all that it allowed has been handed
-- out up to `paced_until`.
ALTER TABLE operation
    DROP CONSTRAINT operation_kind_check,
    ADD CONSTRAINT operation_kind_check CHECK (kind IN (1, 2, 3)),
    ALTER COLUMN since DROP NOT NULL,
    ALTER COLUMN until DROP NOT NULL,
    ALTER COLUMN newest_first SET DEFAULT false,
    ADD COLUMN selection     jsonb,
    ADD COLUMN per_second    double precision CHECK (per_second > 0),
    ADD COLUMN paced_until   timestamptz,
    ADD COLUMN done_through  bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT operation_range CHECK (kind <> 1 OR (since IS NOT NULL AND until IS NOT NULL)),
    ADD CONSTRAINT operation_selection CHECK ((kind <> 1) = (selection IS NOT NULL));

-- A run that was replayed has no instant of its own: it is an item because it is followed to its end.
ALTER TABLE operation_item DROP CONSTRAINT operation_item_pkey;
ALTER TABLE operation_item ALTER COLUMN at DROP NOT NULL;
CREATE UNIQUE INDEX operation_item_instant ON operation_item (operation, at);
ALTER TABLE operation_item ADD CONSTRAINT operation_item_of_something CHECK (at IS NOT NULL OR run IS NOT NULL);
