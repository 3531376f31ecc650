-- Runs that are to stop although a worker holds them, and what long work tells of itself meanwhile
-- (docs/why/0030-cancel-has-one-winner.md).

-- `cancel_asked`: since when the run is to end. Written under the row's lock, and asked for under it by whoever would let
-- the run go on, so that it never does. A success is not asked: it is the end.
-- `recall`: the worker that holds the run and has something to hear of it: stop it (cancel_asked), or hand it back unless
-- it has begun (its job was paused). Heartbeats look for it. Null, for ordinary runs, takes no room.
ALTER TABLE run ADD COLUMN cancel_asked timestamptz;
ALTER TABLE run ADD COLUMN recall bigint;
CREATE INDEX run_recalled ON run (recall) WHERE recall IS NOT NULL;

-- Asks for the end of what workers hold of these runs; returns who is to hear of it. The fence is looked at again under the
-- lock: a run that was handed back meanwhile is nobody's. The first word counts: asked again, nothing changes but who is to
-- hear of it. Claims are walked through once, however many runs there are.
CREATE FUNCTION ask_to_stop(ids bigint[]) RETURNS TABLE (id bigint, worker bigint, is_remote boolean)
    LANGUAGE sql
    SET enable_hashjoin = on
BEGIN ATOMIC
    WITH held AS MATERIALIZED (
        SELECT held.run, claim.id, claim.worker
          FROM claim CROSS JOIN LATERAL unnest(claim.runs) AS held(run)
          JOIN unnest($1) AS x(run) ON x.run = held.run
    ), mine AS MATERIALIZED (
        SELECT run.id, held.worker FROM held JOIN run ON run.id = held.run AND run.fence < held.id AND run.state = 1
         ORDER BY run.id FOR NO KEY UPDATE OF run
    )
    UPDATE run SET cancel_asked = coalesce(run.cancel_asked, clock_timestamp()), recall = mine.worker
      FROM mine WHERE run.id = mine.id
    RETURNING run.id, mine.worker, (SELECT worker.key FROM worker WHERE worker.id = mine.worker) IS NOT NULL;
END;

-- Ends what waits of the predecessors of these runs (overlap: cancelPrevious), asks for the end of what runs, and lets
-- others have the seats that are free; the runs that won. Popped in a statement of its own: one that has to look at a row
-- again, which somebody has just changed, must not be a deed in itself.
CREATE OR REPLACE FUNCTION supersede(ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
AS $$
DECLARE
    older   bigint[] := ARRAY(SELECT older.id FROM run newer JOIN run older ON older.job = newer.job AND older.origin = 0
                               WHERE newer.id = ANY (ids) AND older.scheduled_at < newer.scheduled_at);
    locked  bigint[] := lock_slots(older);
    popped  bigint[];
    held    bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM ready USING run JOIN spec ON spec.id = run.spec
         WHERE run.id = ANY (older) AND ready.lane = spec.lane AND ready.rank = run.rank AND ready.run = run.id
        RETURNING ready.run
    )
    SELECT array_agg(run) INTO popped FROM gone;
    WITH gone AS (
        DELETE FROM run WHERE run.id = ANY (older) AND (run.state IN (0, 2) OR run.id = ANY (popped))
        RETURNING run.id, run.job, run.scheduled_at, run.due_at, run.tenant, run.spec, run.attempt
    )
    INSERT INTO history (run, job, scheduled_at, due_at, finished_at, tenant, spec, attempt, ending, state, error)
    SELECT id, job, scheduled_at, due_at, clock_timestamp(), tenant, spec, attempt, 0, 6, 'a newer run took its place'
      FROM gone;
    SELECT array_agg(run.id) INTO held FROM run WHERE run.id = ANY (older) AND run.state = 1 AND run.cancel_asked IS NULL;
    IF held IS NOT NULL THEN
        PERFORM ask_to_stop(held);
    END IF;
    RETURN vacate(older, locked);
END $$;

-- How far an attempt says that it is: the last word of each. Apart from `run`, whose rows are written once, and from
-- `history`, which settling writes without asking for it.
CREATE TABLE progress (
    run       bigint NOT NULL,
    fence     bigint NOT NULL,
    fraction  double precision CHECK (fraction BETWEEN 0 AND 1),
    done      double precision,
    total     double precision,
    message   text,
    at        timestamptz NOT NULL,
    PRIMARY KEY (run, fence)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX progress_age ON progress (at);

-- What an attempt wants the next one to know: the last word of the run. It stays when the run is dead, for a replay.
CREATE TABLE checkpoint (
    run       bigint PRIMARY KEY,
    fence     bigint NOT NULL,
    state     bytea NOT NULL CHECK (length(state) <= 262144),
    saved_at  timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX checkpoint_age ON checkpoint (saved_at);
