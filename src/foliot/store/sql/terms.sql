-- :name read_terms
SELECT id, version, rate, burst, backlog, most_jobs, most_schedules, most_keys FROM tenant WHERE name = $1

-- :name hold_terms
-- NO KEY, as in `change_weight`.
SELECT id, version, rate, burst, backlog, most_jobs, most_schedules, most_keys FROM tenant WHERE name = $1 FOR NO KEY UPDATE

-- :name change_terms
UPDATE tenant
   SET rate = $2, burst = $3, backlog = $4, most_jobs = $5, most_schedules = $6, most_keys = $7
 WHERE id = $1

-- :name change_key_rate
UPDATE api_key SET rate = $3, burst = $4 WHERE tenant = $1 AND id = $2

-- :name hold_quota
-- Whoever adds to what is counted comes alone; a tenant without a quota is not held up.
SELECT name, most_jobs, most_schedules, most_keys FROM tenant
 WHERE id = $1 AND (most_jobs IS NOT NULL OR most_schedules IS NOT NULL OR most_keys IS NOT NULL)
   FOR NO KEY UPDATE

-- :name count_jobs
-- No further than it matters: one more than $2 and $3, and nothing of what is null. By an index that holds only what is
-- counted, so that a tenant's millions of one-time jobs are not walked over.
SELECT CASE WHEN $2::int IS NOT NULL THEN (SELECT count(*) FROM (
            SELECT FROM job WHERE tenant = $1 AND kind <> 1 AND gate <> 2 LIMIT $2 + 1) AS counted) END AS jobs,
       CASE WHEN $3::int IS NOT NULL THEN (SELECT count(*) FROM (
            SELECT FROM job WHERE tenant = $1 AND kind = 2 AND kind <> 1 AND gate <> 2 LIMIT $3 + 1) AS counted) END
       AS schedules

-- :name count_keys
-- Apart from jobs: the role that makes those may not look at keys, and is refused as soon as a plan names their table.
SELECT count(*) FROM (SELECT FROM api_key WHERE tenant = $1 AND revoked_at IS NULL
                         AND (expires_at IS NULL OR expires_at > clock_timestamp()) LIMIT $2 + 1) AS counted

-- :name settle_allowances
-- In order of their keys, so that two who settle cannot deadlock.
WITH held AS (
    SELECT a.tenant, a.key, x.rate, x.burst, x.spent, x.asked
      FROM unnest($1::int[], $2::text[], $3::float8[], $4::int[], $5::bigint[], $6::bigint[])
           AS x(tenant, key, rate, burst, spent, asked)
      JOIN allowance AS a ON a.tenant = x.tenant AND a.key = x.key
     ORDER BY a.tenant, a.key
       FOR UPDATE OF a
)
UPDATE allowance AS a
   SET level = least(held.burst, a.level + held.rate
                                 * greatest(0, extract(epoch FROM clock_timestamp() - a.at))::float8) - held.spent,
       asked = a.asked + held.asked, at = greatest(a.at, clock_timestamp())
  FROM held WHERE a.tenant = held.tenant AND a.key = held.key
RETURNING a.tenant, a.key, a.level, a.asked

-- :name open_allowances
INSERT INTO allowance (tenant, key, level, asked, at)
SELECT tenant, key, burst, 0, clock_timestamp() FROM unnest($1::int[], $2::text[], $3::int[]) AS x(tenant, key, burst)
 ORDER BY tenant, key
ON CONFLICT DO NOTHING

-- :name drop_allowances
-- What nobody has asked for in an hour is full, whatever its rate, or as good as.
DELETE FROM allowance WHERE at < clock_timestamp() - interval '1 hour'

-- :name sample_backlog
-- Runs that are due and have not ended, by tenant: counted on 256 pages drawn anew each time, and told for all. Exact
-- while the table is no larger than that; of a million, ten looks were 781,000 to 1,007,000 for 909,000. On a busy
-- machine a look took 22 ms then, and counting them all 1,231.
SELECT tenant,
       (count(*) * greatest(1.0, pg_relation_size('foliot.run') / (256 * 8192.0)))::bigint AS runs
  FROM run TABLESAMPLE SYSTEM (least(100.0, 100.0 * 256 * 8192.0 / greatest(1, pg_relation_size('foliot.run'))))
 WHERE id > 0 AND state IN (1, 2)
 GROUP BY tenant
