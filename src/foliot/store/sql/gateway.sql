-- :name claim_for_many
-- What `claim` does, for several workers at once: one scan, one claim row for each. The run at the n-th place in the
-- order goes to the worker whose index stands at the n-th place of $6. By subscript and not by join: a join of two
-- unnested arrays compares every pair, 4 million times for 2,000 runs. Each lane gives up to its portion ($7), one of a
-- paused queue nothing.
WITH head AS MATERIALIZED (
    SELECT ready.ctid AS place, ready.rank, ready.run
      FROM unnest($3::int[], $4::bigint[], $7::int[]) AS wanted(lane, mark, portion)
     CROSS JOIN LATERAL (
            SELECT ready.ctid, ready.rank, ready.run FROM ready
             WHERE ready.lane = wanted.lane AND ready.rank >= wanted.mark
             ORDER BY ready.rank LIMIT wanted.portion FOR UPDATE SKIP LOCKED) AS ready
     WHERE wanted.lane <> ALL (ARRAY(SELECT lane FROM paused_lane))
     LIMIT $5
), popped AS (
    DELETE FROM ready USING head WHERE ready.ctid = head.place RETURNING ready.rank, ready.run
), shared AS (
    SELECT ($6::int[])[row_number() OVER (ORDER BY rank)] AS owner, rank, run FROM popped
), claimed AS (
    INSERT INTO claim (worker, number, runs)
    SELECT ($1::bigint[])[owner], ($2::bigint[])[owner], array_agg(run ORDER BY rank) FROM shared GROUP BY owner
    RETURNING id, worker, claimed_at, runs
)
SELECT claimed.worker, claimed.claimed_at, claimed.id AS fence, taken.position::int AS position, run.id, run.rank,
       run.tenant, run.spec, run.job, run.attempt, run.deaths, run.scheduled_at, run.target, run.payload, run.forgiven
  FROM claimed CROSS JOIN LATERAL unnest(claimed.runs) WITH ORDINALITY AS taken(run, position)
  JOIN run ON run.id = taken.run

-- :name fetch_again
-- `reclaim` for a worker that asks through whichever gateway. Whoever fetches a claim again touches it: another gateway
-- that still holds the first answer, for a connection that broke, may then not hand it back (see `disown`).
WITH touched AS (
    UPDATE claim SET claimed_at = greatest(clock_timestamp(), claimed_at + interval '1 microsecond')
     WHERE worker = $1 AND number = $2
    RETURNING id, worker, claimed_at, runs
)
SELECT touched.worker, touched.claimed_at, touched.id AS fence, taken.position::int AS position, run.id, run.rank,
       run.tenant, run.spec, run.job, run.attempt, run.deaths, run.scheduled_at, run.target, run.payload, run.forgiven
  FROM touched CROSS JOIN LATERAL unnest(touched.runs) WITH ORDINALITY AS taken(run, position)
  JOIN run ON run.id = taken.run AND run.fence < touched.id

-- :name strays_for_many
-- Fences are unique, so one list of those that are known does for all workers.
WITH touched AS (
    UPDATE claim SET claimed_at = greatest(clock_timestamp(), claimed_at + interval '1 microsecond')
     WHERE worker = ANY ($1::bigint[]) AND id <> ALL ($2::bigint[])
    RETURNING id, worker, claimed_at, runs
)
SELECT touched.worker, touched.claimed_at, touched.id AS fence, taken.position::int AS position, run.id, run.rank,
       run.tenant, run.spec, run.job, run.attempt, run.deaths, run.scheduled_at, run.target, run.payload, run.forgiven
  FROM touched CROSS JOIN LATERAL unnest(touched.runs) WITH ORDINALITY AS taken(run, position)
  JOIN run ON run.id = taken.run AND run.fence < touched.id

-- :name disown
-- The worker hung up before it could be told of this claim. Nobody's claim is concluded by who disowned it, or by the
-- next reap if that died meanwhile; one that was fetched again since (claimed_at) is somebody's. Worker 0 does not exist.
UPDATE claim SET worker = 0, number = id WHERE worker = $1 AND id = $2 AND claimed_at = $3 RETURNING id

-- :name settle_for_many
-- What `settle` does, for claims of several workers: claim n of $1, held by worker n of $2, covers the places $3 to $4 of
-- the arrays of runs. So every run meets its own claim only, however many claims there are. Answers with all that were
-- settled if they are fewer than were given. Tied runs only if $8 says so, as in `settle`.
WITH held AS MATERIALIZED (
    SELECT claim.id, claim.worker, claim.runs, x.first, x.last
      FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[]) AS x(fence, worker, first, last)
      JOIN claim ON claim.id = x.fence AND claim.worker = x.worker
       FOR KEY SHARE OF claim
), gone AS (
    DELETE FROM run USING held CROSS JOIN LATERAL generate_series(held.first, held.last) AS n
     WHERE run.id = ($5::bigint[])[n] AND held.runs[($6::int[])[n]] = run.id AND run.fence < held.id
       AND (run.tied IS NULL OR $8::boolean)
    RETURNING run.id, run.job, run.scheduled_at, run.due_at, run.tenant, run.spec, run.attempt, run.target,
              ($7::timestamptz[])[n] AS started_at, held.id AS fence, held.worker
), written AS (
    INSERT INTO history (run, job, scheduled_at, due_at, started_at, finished_at, worker, fence, tenant, spec, attempt,
                         ending, state, target)
    SELECT id, job, scheduled_at, due_at, started_at, clock_timestamp(), worker, fence, tenant, spec, attempt + 1, 1, 4,
           target
      FROM gone
    RETURNING run, fence
)
SELECT count(*) AS settled,
       CASE WHEN count(*) < cardinality($5::bigint[]) THEN coalesce(array_agg(run), '{}') END AS runs,
       CASE WHEN count(*) < cardinality($5::bigint[]) THEN coalesce(array_agg(fence), '{}') END AS fences
  FROM written

-- :name forget_for_many
-- A remote worker's word is not taken for it: a claim that still covers a run stays, or nobody would ever find that run.
DELETE FROM claim USING unnest($1::bigint[], $2::bigint[]) AS x(fence, worker)
 WHERE claim.id = x.fence AND claim.worker = x.worker
   AND NOT EXISTS (SELECT FROM unnest(claim.runs) AS held(run) JOIN run ON run.id = held.run AND run.fence < claim.id)

-- :name note_started_for_many
-- Answers with those that are still held. The claim must name the run: a claim of one's own is no right to any other run.
UPDATE run SET started_at = x.started_at
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[]) AS x(worker, run, fence, started_at)
  JOIN claim ON claim.id = x.fence AND claim.worker = x.worker AND x.run = ANY (claim.runs)
 WHERE run.id = x.run AND run.fence < claim.id
RETURNING run.id, claim.id AS fence

-- :name beat_for_many
-- In order of their ids, so that two gateways cannot deadlock. What worker n has in hand stands at the places $2 to $3 of
-- the arrays that follow, lane by lane. Who tells nothing of it, or of other lanes than its own, keeps what it told before.
-- The claims that it knows of stand at the places $6 to $7 of $8: one look into an index here saves it a call of its own.
WITH alive AS (
    SELECT worker.id, x.first, x.last, x.last - x.first + 1 = cardinality(worker.lanes) AS tells,
           ($8::bigint[])[x.first_known:x.last_known] AS known
      FROM unnest($1::bigint[], $2::int[], $3::int[], $6::int[], $7::int[])
           AS x(id, first, last, first_known, last_known)
      JOIN worker ON worker.id = x.id AND worker.state IN (0, 1)
     ORDER BY worker.id
       FOR NO KEY UPDATE OF worker
), paused AS MATERIALIZED (
    SELECT lane FROM paused_lane
)
UPDATE worker SET seen_at = clock_timestamp(),
                  running = CASE WHEN tells THEN ($4::int[])[first:last] ELSE running END,
                  rate = CASE WHEN tells THEN ($5::real[])[first:last] ELSE rate END
  FROM alive WHERE worker.id = alive.id
RETURNING worker.id, worker.state, ARRAY(SELECT lane FROM paused WHERE lane = ANY (worker.lanes)) AS paused,
          EXISTS (SELECT FROM claim WHERE claim.worker = worker.id AND claim.id <> ALL (alive.known)) AS is_astray,
          ARRAY(SELECT run.id FROM run WHERE run.recall = worker.id AND run.cancel_asked IS NOT NULL) AS stop,
          ARRAY(SELECT run.id FROM run WHERE run.recall = worker.id AND run.cancel_asked IS NULL) AS recalled

-- :name news_of
-- Who of these does not simply go on, or holds a run that does not, which lanes are paused, and which of those that
-- require labels is the newest.
SELECT ARRAY(SELECT id FROM worker WHERE id = ANY ($1::bigint[]) AND state <> 0
             UNION SELECT recall FROM run WHERE recall = ANY ($1::bigint[])) AS changed,
       ARRAY(SELECT lane FROM paused_lane) AS paused, (SELECT coalesce(max(id), 0) FROM lane WHERE labels <> '') AS newest

-- :name introduce_workers
-- With its key from the first moment: a worker that is there already, or has none, can be nobody's by a later word.
-- The lanes of worker n stand at the places $9 to $10 of $11.
INSERT INTO worker (id, name, key, host, pid, version, app, concurrency, lanes)
SELECT id, name, key, host, pid, version, app, concurrency, ($11::int[])[first:last]
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::int[], $6::text[], $7::text[], $8::int[], $9::int[],
              $10::int[])
       AS x(id, name, key, host, pid, version, app, concurrency, first, last)
 ORDER BY id
ON CONFLICT (id) DO NOTHING

-- :name worker_keys
SELECT id, key FROM worker WHERE id = ANY ($1::bigint[]) AND key IS NOT NULL

-- :name lane_queues
SELECT id, queue FROM lane WHERE id = ANY ($1::int[])

-- :name keep_told_results
-- `keep_late_results` of a worker whose word is not taken for whose the runs are: tenant and job are those on record, and
-- the run must be of a lane that the worker serves. Otherwise a key for one queue could write into every tenant's attempts.
INSERT INTO late_result (run, fence, tenant, job, attempt, worker, scheduled_at, started_at, ending, error)
SELECT x.run, x.fence, found.tenant, found.job, x.attempt, $1, x.scheduled_at, x.started_at, x.ending, x.error
  FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::bigint[], $6::smallint[], $7::timestamptz[], $8::timestamptz[],
              $9::smallint[], $10::text[])
       AS x(run, fence, tenant, job, attempt, scheduled_at, started_at, ending, error)
 CROSS JOIN LATERAL (
        SELECT tenant, job, spec FROM run WHERE id = x.run
        UNION ALL SELECT tenant, job, spec FROM dead_letter WHERE id = x.run
        UNION ALL SELECT tenant, job, spec FROM timer WHERE id = x.run
        UNION ALL SELECT tenant, job, spec FROM history WHERE tenant = x.tenant AND run = x.run
        LIMIT 1) AS found
  JOIN spec ON spec.id = found.spec
  JOIN worker ON worker.id = $1 AND spec.lane = ANY (worker.lanes)
 ORDER BY x.run, x.fence
ON CONFLICT (run, fence) DO NOTHING
