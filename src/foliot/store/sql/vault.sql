-- :name sealing_tenants
-- Asked for every two seconds, by processes that write for many tenants.
SELECT id, sealed_with FROM tenant WHERE sealed_with IS NOT NULL

-- :name data_keys
SELECT version, master, wrapped FROM data_key WHERE tenant = $1 ORDER BY version

-- :name all_data_keys
SELECT tenant, version, master, wrapped FROM data_key ORDER BY tenant, version FOR NO KEY UPDATE

-- :name hold_keys_of
SELECT id, name, sealed_with FROM tenant WHERE id = $1 FOR NO KEY UPDATE

-- :name add_data_key
INSERT INTO data_key (tenant, version, master, wrapped) VALUES ($1, $2, $3, $4)

-- :name rewrap_data_key
UPDATE data_key SET master = $3, wrapped = $4 WHERE tenant = $1 AND version = $2

-- :name seal_with
UPDATE tenant SET sealed_with = $2 WHERE id = $1

-- :name read_canary
SELECT master, wrapped FROM canary

-- :name hold_canary
SELECT master, wrapped FROM canary FOR UPDATE

-- :name set_canary
INSERT INTO canary (master, wrapped) VALUES ($1, $2) ON CONFLICT (alone) DO NOTHING

-- :name change_canary
UPDATE canary SET master = $1, wrapped = $2

-- :name masters_in_use
SELECT DISTINCT master FROM data_key

-- :name how_sealed
-- Of one tenant, or of all that have a data key: which one seals, how many there are, and the master keys around them.
SELECT t.id, t.name, t.sealed_with, max(k.version) AS versions, array_agg(DISTINCT k.master) AS masters,
       max(k.created_at) AS since
  FROM tenant t JOIN data_key k ON k.tenant = t.id
 WHERE $1::int IS NULL OR t.id = $1
 GROUP BY t.id ORDER BY t.name

-- :name plain_among_newest
-- The proof that it is on: of what a tenant has stored, newest first, how much is not sealed. Of runs and timers those
-- among the newest of all tenants: neither has an index that begins with the tenant.
SELECT count(*) AS looked_at, count(*) FILTER (WHERE substring(payload FROM 1 FOR 2) <> '\x0001') AS plain
  FROM ((SELECT payload FROM job WHERE tenant = $1 ORDER BY id DESC LIMIT 1000)
        UNION ALL (SELECT payload FROM (SELECT tenant, payload FROM run ORDER BY id DESC LIMIT 10000) AS newest
                    WHERE tenant = $1)
        UNION ALL (SELECT payload FROM (SELECT tenant, payload FROM timer ORDER BY id DESC LIMIT 10000) AS newest
                    WHERE tenant = $1)
        UNION ALL (SELECT payload FROM dead_letter WHERE tenant = $1 ORDER BY id DESC LIMIT 1000)) AS newest

-- :name put_secret
INSERT INTO secret (tenant, name, value) VALUES ($1, $2, $3)
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value, version = secret.version + 1,
                                         updated_at = clock_timestamp()
RETURNING name, version, updated_at

-- :name list_secrets
SELECT name, version, updated_at FROM secret WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3

-- :name find_secret
SELECT name, version, updated_at FROM secret WHERE tenant = $1 AND name = $2

-- :name delete_secret
DELETE FROM secret WHERE tenant = $1 AND name = $2 RETURNING name, version, updated_at

-- :name secret_values
SELECT name, value FROM secret WHERE tenant = $1 AND ($2::text[] IS NULL OR name = ANY ($2::text[]))

-- :name held_run
-- A run that this worker holds by this claim, with all that may refer to secrets.
SELECT run.tenant, run.job, run.payload, run.target, spec.body
  FROM claim JOIN run ON run.id = $2 AND run.id = ANY (claim.runs) AND run.fence < claim.id
  JOIN spec ON spec.id = run.spec
 WHERE claim.id = $3 AND claim.worker = $1

-- :name run_of_attempt
-- The run of an attempt that was entrusted to somebody, with all that may refer to secrets: live, dead, or over, when its
-- payload is gone.
SELECT found.tenant, found.job, found.payload, found.target, spec.body
  FROM (SELECT 1 AS place, tenant, job, payload, target, spec FROM run WHERE id = $1
         UNION ALL
        SELECT 2, tenant, job, payload, target, spec FROM dead_letter WHERE id = $1
         UNION ALL
        SELECT 3, tenant, job, NULL, target, spec FROM history WHERE tenant = $2 AND run = $1 AND fence = $3) AS found
  JOIN spec ON spec.id = found.spec
 WHERE found.tenant = $2
 ORDER BY found.place LIMIT 1

-- :name begin_reseal
-- One more than there is, until a look has found nothing that is left.
INSERT INTO operation (id, tenant, kind, name, arguments, selection, concurrency, total)
VALUES ($1, $2, 4, $3, $4::jsonb, '{}', 1, 1)

-- :name give_up_reseals
-- A newer key seals all that the one before was to seal.
UPDATE operation SET state = 3, finished_at = clock_timestamp(), reason = $2
 WHERE tenant = $1 AND kind = 4 AND finished_at IS NULL

-- :name next_reseal
SELECT id, tenant FROM operation WHERE kind = 4 AND state IN (0, 1) AND finished_at IS NULL ORDER BY id LIMIT 1

-- :name hold_reseal
SELECT id FROM operation WHERE id = $1 AND state IN (0, 1) AND finished_at IS NULL FOR NO KEY UPDATE SKIP LOCKED

-- :name note_resealed
UPDATE operation SET submitted = submitted + $2, succeeded = succeeded + $2, state = CASE WHEN $3::boolean THEN 2 ELSE 1 END,
                     total = submitted + $2 + CASE WHEN $3::boolean THEN 0 ELSE 1 END,
                     finished_at = CASE WHEN $3::boolean THEN clock_timestamp() END,
                     started_at = coalesce(started_at, clock_timestamp())
 WHERE id = $1

-- :name jobs_to_reseal
SELECT id, NULL::timestamptz AS at, id AS job, NULL::bigint AS run, payload, NULL::bytea AS target, NULL::bytea AS result,
       NULL::text AS error
  FROM job WHERE tenant = $1 AND id >= $2 AND substring(payload FROM 1 FOR 6) <> $4 ORDER BY id LIMIT $3
   FOR NO KEY UPDATE

-- :name reseal_jobs
UPDATE job SET payload = x.payload FROM unnest($1::bigint[], $2::timestamptz[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
       AS x(id, at, payload, target, result, error) WHERE job.id = x.id

-- :name versions_to_reseal
SELECT job AS id, until AS at, job, NULL::bigint AS run, payload, NULL::bytea AS target, NULL::bytea AS result,
       NULL::text AS error
  FROM job_version WHERE tenant = $1 AND job >= $2 AND substring(payload FROM 1 FOR 6) <> $4 ORDER BY job LIMIT $3
   FOR NO KEY UPDATE

-- :name reseal_versions
UPDATE job_version v SET payload = x.payload
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
       AS x(id, at, payload, target, result, error) WHERE v.job = x.id AND v.until = x.at

-- :name subscriptions_to_reseal
SELECT job AS id, after AS at, job, NULL::bigint AS run, payload, NULL::bytea AS target, NULL::bytea AS result,
       NULL::text AS error
  FROM subscription WHERE tenant = $1 AND job >= $2 AND substring(payload FROM 1 FOR 6) <> $4 ORDER BY job LIMIT $3
   FOR NO KEY UPDATE

-- :name reseal_subscriptions
UPDATE subscription s SET payload = x.payload
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
       AS x(id, at, payload, target, result, error) WHERE s.job = x.id AND s.after = x.at

-- :name timers_to_reseal
SELECT id, NULL::timestamptz AS at, job, id AS run, payload, target, NULL::bytea AS result, NULL::text AS error
  FROM timer WHERE tenant = $1 AND id >= $2 AND substring(payload FROM 1 FOR 6) <> $4 ORDER BY id LIMIT $3
   FOR NO KEY UPDATE

-- :name reseal_timers
UPDATE timer SET payload = x.payload, target = x.target
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
       AS x(id, at, payload, target, result, error) WHERE timer.id = x.id

-- :name runs_to_reseal
SELECT id, NULL::timestamptz AS at, job, id AS run, payload, target, NULL::bytea AS result, NULL::text AS error
  FROM run WHERE tenant = $1 AND id >= $2 AND substring(payload FROM 1 FOR 6) <> $4 ORDER BY id LIMIT $3
   FOR NO KEY UPDATE

-- :name reseal_runs
UPDATE run SET payload = x.payload, target = x.target
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
       AS x(id, at, payload, target, result, error) WHERE run.id = x.id

-- :name checkpoints_to_reseal
SELECT c.run AS id, NULL::timestamptz AS at, NULL::bigint AS job, c.run, NULL::bytea AS payload, NULL::bytea AS target,
       c.state AS result, NULL::text AS error
  FROM checkpoint c
 WHERE c.run >= $2 AND substring(c.state FROM 1 FOR 6) <> $4
   AND (EXISTS (SELECT FROM run WHERE run.id = c.run AND run.tenant = $1)
        OR EXISTS (SELECT FROM dead_letter d WHERE d.id = c.run AND d.tenant = $1))
 ORDER BY c.run LIMIT $3 FOR NO KEY UPDATE OF c

-- :name reseal_checkpoints
UPDATE checkpoint c SET state = x.result
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
       AS x(id, at, payload, target, result, error) WHERE c.run = x.id

-- :name letters_to_reseal
SELECT id, NULL::timestamptz AS at, job, id AS run, payload, target, NULL::bytea AS result, error
  FROM dead_letter
 WHERE tenant = $1 AND id >= $2 AND (substring(payload FROM 1 FOR 6) <> $4 OR strpos(error, $5) = 0)
 ORDER BY id LIMIT $3 FOR NO KEY UPDATE

-- :name reseal_letters
UPDATE dead_letter d SET payload = x.payload, target = x.target, error = x.error
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
       AS x(id, at, payload, target, result, error) WHERE d.id = x.id

-- :name history_to_reseal
SELECT run AS id, finished_at AS at, job, run, NULL::bytea AS payload, target, result, error
  FROM history
 WHERE tenant = $1 AND run >= $2
   AND (strpos(error, $5) = 0 OR substring(target FROM 1 FOR 6) <> $4 OR substring(result FROM 1 FOR 6) <> $4)
 ORDER BY run LIMIT $3 FOR NO KEY UPDATE

-- :name reseal_history
UPDATE history h SET target = x.target, result = x.result, error = x.error
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
       AS x(id, at, payload, target, result, error)
 WHERE h.tenant = $7 AND h.run = x.id AND h.finished_at = x.at

-- :name late_results_to_reseal
SELECT run AS id, recorded_at AS at, job, run, NULL::bytea AS payload, NULL::bytea AS target, NULL::bytea AS result, error
  FROM late_result WHERE tenant = $1 AND run >= $2 AND strpos(error, $4) = 0 ORDER BY run LIMIT $3 FOR NO KEY UPDATE

-- :name reseal_late_results
UPDATE late_result l SET error = x.error
  FROM unnest($1::bigint[], $2::timestamptz[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
       AS x(id, at, payload, target, result, error)
 WHERE l.run = x.id AND l.recorded_at = x.at

-- :name secrets_to_reseal
SELECT name, value FROM secret WHERE tenant = $1 AND substring(value FROM 1 FOR 6) <> $2 FOR NO KEY UPDATE

-- :name reseal_secret
UPDATE secret SET value = $3 WHERE tenant = $1 AND name = $2
