-- :name reserve
-- Ranks are reserved and committed before the insert that uses them: a crash leaves a gap in the ranks, never a lock.
-- Flows in key order, so that two reservers cannot deadlock. Ids ride along: one round trip for both.
WITH reserved AS (
    INSERT INTO flow AS f (lane, tenant, priority, last)
    SELECT x.lane, x.tenant, x.priority, lane.v + x.cost
      FROM unnest($1::int[], $2::int[], $3::smallint[], $4::bigint[]) AS x(lane, tenant, priority, cost)
      JOIN lane ON lane.id = x.lane
     ORDER BY x.lane, x.tenant, x.priority
    ON CONFLICT (lane, tenant, priority) DO UPDATE
       SET last = greatest(f.last, (SELECT v FROM lane WHERE id = excluded.lane))
                  + excluded.last - (SELECT v FROM lane WHERE id = excluded.lane)
    RETURNING lane, tenant, priority, last
)
SELECT clock_timestamp() AS at, (SELECT array_agg(nextval('id_block')) FROM generate_series(1, $5::int)) AS blocks,
       reserved.lane, reserved.tenant, reserved.priority, reserved.last
  FROM (SELECT) AS always LEFT JOIN reserved ON true

-- :name enqueue
WITH made AS (
    INSERT INTO run (id, tenant, spec, job, origin, occurrence, scheduled_at, due_at, rank, state, target, payload)
    SELECT id, tenant, spec, job, CASE WHEN job IS NOT NULL THEN id END, CASE WHEN job IS NOT NULL THEN now() END,
           now(), now(), rank, 1, target, payload
      FROM unnest($1::bigint[], $2::int[], $3::int[], $4::bigint[], $6::bigint[], $7::bytea[], $8::bytea[])
           AS x(id, tenant, spec, job, rank, target, payload)
)
INSERT INTO ready (lane, rank, run)
SELECT lane, rank, run FROM unnest($5::int[], $6::bigint[], $1::bigint[]) AS x(lane, rank, run)

-- :name enqueue_alone
-- `reserve` and `enqueue` in one, for a run that comes alone. Why it commits twice is told beside the procedure, in the
-- fourteenth migration.
CALL enqueue_alone($1, $2, $3, $4, $5, $6, $7)

-- :name claim
-- Pops the lowest ranks of each lane, from its low-water mark on. Lanes come in the order the worker wants to be fed,
-- each with the most it may give; the outer LIMIT stops the scan, and with it the locking, as soon as there is enough.
-- Lanes of paused queues are passed over: asked once per claim of a table that is nearly always empty.
WITH head AS MATERIALIZED (
    SELECT ready.ctid AS place, ready.rank, ready.run
      FROM unnest($3::int[], $4::bigint[], $6::int[]) AS wanted(lane, mark, portion)
     CROSS JOIN LATERAL (
            SELECT ready.ctid, ready.rank, ready.run FROM ready
             WHERE ready.lane = wanted.lane AND ready.rank >= wanted.mark
             ORDER BY ready.rank LIMIT wanted.portion FOR UPDATE SKIP LOCKED) AS ready
     WHERE wanted.lane <> ALL (ARRAY(SELECT lane FROM paused_lane))
     LIMIT $5
), popped AS (
    DELETE FROM ready USING head WHERE ready.ctid = head.place RETURNING ready.rank, ready.run
), claimed AS (
    INSERT INTO claim (worker, number, runs)
    SELECT $1, $2, array_agg(run ORDER BY rank) FROM popped HAVING count(*) > 0
    RETURNING id, runs
)
SELECT claimed.id AS fence, taken.position::int AS position, run.id, run.rank, run.tenant, run.spec, run.job,
       run.attempt, run.deaths, run.scheduled_at, run.target, run.payload, run.forgiven, run.tied
  FROM claimed CROSS JOIN LATERAL unnest(claimed.runs) WITH ORDINALITY AS taken(run, position)
  JOIN run ON run.id = taken.run

-- :name claim_when_ready
SELECT * FROM claim_when_ready($1, $2, $3::int[], $4::bigint[], $5, $6::int[], $7)

-- :name reclaim
-- The reply to a claim was lost: what did it take?
SELECT claim.id AS fence, taken.position::int AS position, run.id, run.rank, run.tenant, run.spec, run.job,
       run.attempt, run.deaths, run.scheduled_at, run.target, run.payload, run.forgiven, run.tied
  FROM claim CROSS JOIN LATERAL unnest(claim.runs) WITH ORDINALITY AS taken(run, position)
  JOIN run ON run.id = taken.run AND run.fence < claim.id
 WHERE claim.worker = $1 AND claim.number = $2

-- :name strays
-- Claims that stand in this worker's name and that it knows nothing of: the reply was lost, or the claim reached us after
-- its sender had given it up.
SELECT claim.id AS fence, taken.position::int AS position, run.id, run.rank, run.tenant, run.spec, run.job,
       run.attempt, run.deaths, run.scheduled_at, run.target, run.payload, run.forgiven, run.tied
  FROM claim CROSS JOIN LATERAL unnest(claim.runs) WITH ORDINALITY AS taken(run, position)
  JOIN run ON run.id = taken.run AND run.fence < claim.id
 WHERE claim.worker = $1 AND claim.id <> ALL ($2::bigint[])

-- :name settle
-- The way of success. A run is ours if our claim still stands, names the run at that position, and nothing newer has
-- fenced it. Answers with how many were ours; `settled` tells which, in the rare case that not all were. What is tied is
-- ours to settle only if we say so: others wait for it (store/admission.py).
WITH held AS MATERIALIZED (
    SELECT id, runs FROM claim WHERE id = ANY ($6::bigint[]) AND worker = $1 FOR KEY SHARE
), gone AS (
    DELETE FROM run USING unnest($2::bigint[], $3::bigint[], $4::int[], $5::timestamptz[])
                          AS x(run, fence, position, started_at), held
     WHERE held.id = x.fence AND held.runs[x.position] = x.run AND run.id = x.run AND run.fence < held.id
       AND (run.tied IS NULL OR $7::boolean)
    RETURNING run.id, run.job, run.scheduled_at, run.due_at, run.tenant, run.spec, run.attempt, run.target,
              x.started_at, x.fence
), written AS (
    INSERT INTO history (run, job, scheduled_at, due_at, started_at, finished_at, worker, fence, tenant, spec, attempt,
                         ending, state, target)
    SELECT id, job, scheduled_at, due_at, started_at, clock_timestamp(), $1, fence, tenant, spec, attempt + 1, 1, 4, target
      FROM gone
    RETURNING 1
)
SELECT count(*) FROM written

-- :name conclude
-- Every other ending (7 snoozed, 8 released: no attempt is spent). Each run that stays gets fence = this claim, so that
-- the claim covers it no more: a late writer cannot tell a retried run from the one it held. `delay` null with state 1
-- hands the run back at once, unless its job was paused meanwhile (blocked) or cancelled (ended). The job is locked,
-- because a gate that closes unseen would let the run start again. What was lost (5) killed its own process, running
-- alone: it uses up no retry, but the third time it is quarantined (domain/suspicion.py). What was asked to stop ends here,
-- whatever its worker asks for: how the attempt ended is told as it was, and cancelled (4) if it was handed back. Tied runs
-- as in `settle`.
-- What goes on outside ($13) has no claim: whoever takes its row away there gets one, from the same sequence, for as long
-- as this takes. On record is the fence that its handler was told. Always with $14: a row that is taken away is a deed.
WITH mine AS MATERIALIZED (
    SELECT id, runs FROM claim WHERE id = ANY ($10::bigint[]) AND worker = $1 FOR KEY SHARE
), recalled AS (
    DELETE FROM outside USING unnest($2::bigint[], $3::bigint[]) AS x(run, fence)
     WHERE $13 AND outside.run = x.run AND outside.fence = x.fence AND outside.worker = $1
    RETURNING outside.run, outside.fence, nextval('fence') AS id
), held AS MATERIALIZED (
    SELECT id, id AS fence, runs FROM mine UNION ALL SELECT id, fence, ARRAY[run] FROM recalled
), ours AS MATERIALIZED (
    SELECT run.*, held.id AS claim, x.fence AS told, x.started_at AS began, x.ending, x.asked, x.delay, x.error,
           x.error_class, x.result, (SELECT job.gate FROM job WHERE job.id = run.job FOR KEY SHARE) AS gate
      FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::timestamptz[], $6::smallint[], $7::smallint[],
                  $8::interval[], $9::text[], $11::text[], $12::bytea[])
           AS x(run, fence, position, started_at, ending, asked, delay, error, error_class, result)
      JOIN held ON held.fence = x.fence AND held.runs[x.position] = x.run
      JOIN run ON run.id = x.run AND run.fence < held.id AND (run.tied IS NULL OR $14::boolean)
     ORDER BY run.id
       FOR UPDATE OF run
), covered AS MATERIALIZED (
    SELECT *, CASE WHEN cancel_asked IS NOT NULL AND asked <> 4 THEN 6
                   WHEN gate = 2 AND asked IN (0, 1) THEN 6 WHEN gate = 1 AND asked = 1 THEN 2
                   WHEN ending = 5 AND coalesce(crashes, 0) + 1 >= 3 THEN 5 ELSE asked END
              AS next_state
      FROM ours
), kept AS (
    UPDATE run SET fence = covered.claim, state = covered.next_state, started_at = NULL, recall = NULL,
                   attempt = run.attempt + CASE WHEN covered.ending IN (7, 8) THEN 0 ELSE 1 END,
                   deaths = run.deaths + CASE WHEN covered.ending = 5 THEN 1 ELSE 0 END,
                   crashes = CASE WHEN covered.ending = 5 THEN coalesce(run.crashes, 0) + 1 ELSE run.crashes END,
                   due_at = CASE WHEN covered.delay IS NULL THEN run.due_at ELSE clock_timestamp() + covered.delay END,
                   rank = lane.v + 1
      FROM covered JOIN spec ON spec.id = covered.spec JOIN lane ON lane.id = spec.lane
     WHERE run.id = covered.id AND covered.next_state IN (0, 1, 2)
    RETURNING run.id, run.state, run.rank, lane.id AS lane
), handed_back AS (
    INSERT INTO ready (lane, rank, run) SELECT lane, rank, id FROM kept WHERE state = 1
), dead AS (
    INSERT INTO dead_letter (id, job, origin, scheduled_at, due_at, died_at, fence, tenant, spec, attempt, error,
                             target, payload, error_class, limit_key)
    SELECT id, job, origin, scheduled_at, due_at, clock_timestamp(), claim, tenant, spec, attempt + 1,
           CASE WHEN ending = 5 THEN 'quarantined: it killed its process ' || coalesce(crashes, 0) + 1
                                     || ' times while running alone; the last time, ' || error ELSE error END,
           target, payload, CASE WHEN ending = 5 THEN 'quarantined' ELSE error_class END, limit_key
      FROM covered WHERE next_state = 5
), gone AS (
    DELETE FROM run USING covered WHERE run.id = covered.id AND covered.next_state NOT IN (0, 1, 2)
), written AS (
    INSERT INTO history (run, job, scheduled_at, due_at, started_at, finished_at, worker, fence, tenant, spec, attempt,
                         ending, state, error, target, error_class, result)
    SELECT id, job, scheduled_at, due_at, began, clock_timestamp(), $1, told, tenant, spec,
           attempt + CASE WHEN ending = 8 AND (began IS NULL OR cancel_asked IS NULL) THEN 0 ELSE 1 END,
           CASE WHEN ending <> 8 THEN ending WHEN began IS NULL THEN 0 WHEN cancel_asked IS NOT NULL THEN 4 ELSE 8 END,
           next_state,
           coalesce(error, CASE WHEN next_state <> 6 THEN NULL WHEN gate = 2 THEN 'the job was cancelled'
                                WHEN cancel_asked IS NOT NULL THEN 'cancelled on request' END), target, error_class,
           result
      FROM covered WHERE ending <> 8 OR began IS NOT NULL OR next_state = 6
)
SELECT count(*) FROM covered

-- :name entrust
-- The handlers of these go on outside: our claim covers them no more, and nobody holds them until somebody says how they
-- ended, or their time is up; that of those which were asked to stop is up now. Answers with how many were ours.
WITH held AS MATERIALIZED (
    SELECT id, runs FROM claim WHERE id = ANY ($6::bigint[]) AND worker = $1 FOR KEY SHARE
), ours AS MATERIALIZED (
    SELECT run.id, x.fence, x.started_at, CASE WHEN run.cancel_asked IS NULL THEN x.rest ELSE '0' END AS rest
      FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::timestamptz[], $7::interval[])
           AS x(run, fence, position, started_at, rest)
      JOIN held ON held.id = x.fence AND held.runs[x.position] = x.run
      JOIN run ON run.id = x.run AND run.fence < held.id
     ORDER BY run.id
       FOR UPDATE OF run
), freed AS (
    UPDATE run SET fence = ours.fence, started_at = ours.started_at, recall = NULL FROM ours WHERE run.id = ours.id
), written AS (
    INSERT INTO outside (run, fence, worker, started_at, until)
    SELECT id, fence, $1, started_at, clock_timestamp() + rest FROM ours
    RETURNING 1
)
SELECT count(*) FROM written

-- :name settled
-- Which of these attempts are on record as ours? Asked when a settle covered fewer than it was given, or its reply was
-- lost: a row we wrote means settled, none means the lease was lost. What the reaper wrote in our name has another
-- ending (5 lost, 6 unknown) than we gave, and is not ours. What is handed back (8) unbegun is on record as 0, if at all,
-- and what was asked to stop as cancelled (4). What goes on outside (9) stands there, or has ended since, however it did.
SELECT x.run, x.fence
  FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::smallint[]) AS x(run, fence, tenant, ending)
  JOIN history ON history.tenant = x.tenant AND history.run = x.run AND history.fence = x.fence
              AND history.worker = $1 AND (history.ending = x.ending OR (x.ending = 8 AND history.ending IN (0, 4))
                                           OR (x.ending = 9 AND history.ending NOT IN (5, 6)))
UNION ALL
SELECT x.run, x.fence
  FROM unnest($2::bigint[], $3::bigint[], $5::smallint[]) AS x(run, fence, ending)
  JOIN outside ON outside.run = x.run AND outside.fence = x.fence AND outside.worker = $1
 WHERE x.ending = 9

-- :name keep_late_results
-- What a worker says of runs that it has lost: for people, without effect on the run. Said again, it changes nothing.
INSERT INTO late_result (run, fence, tenant, job, attempt, worker, scheduled_at, started_at, ending, error)
SELECT x.run, x.fence, x.tenant, x.job, x.attempt, $1, x.scheduled_at, x.started_at, x.ending, x.error
  FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::bigint[], $6::smallint[], $7::timestamptz[], $8::timestamptz[],
              $9::smallint[], $10::text[])
       AS x(run, fence, tenant, job, attempt, scheduled_at, started_at, ending, error)
 ORDER BY x.run, x.fence
ON CONFLICT (run, fence) DO NOTHING

-- :name note_started
-- Handlers that take longer than a blink are noted, so that people see since when and the reaper knows who had begun;
-- those of at-most-once runs before they begin. Answers with those that are still ours, by the rule of `settle`.
UPDATE run SET started_at = x.started_at
  FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::timestamptz[]) AS x(run, fence, position, started_at)
  JOIN claim ON claim.id = x.fence AND claim.worker = $1 AND claim.runs[x.position] = x.run
 WHERE run.id = x.run AND run.fence < claim.id
RETURNING run.id, claim.id AS fence

-- :name forget
-- Not waited for until it is on disk: a claim that comes back in a crash covers none of its runs, which are gone or fenced,
-- and goes with its worker.
DELETE FROM claim WHERE worker = $1 AND id = ANY ($2::bigint[]) RETURNING set_config('synchronous_commit', 'off', true)

-- :name publish
UPDATE lane SET v = x.v FROM unnest($1::int[], $2::bigint[]) AS x(id, v) WHERE lane.id = x.id AND lane.v < x.v
