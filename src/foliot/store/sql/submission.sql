-- :name plan
-- The instant decides between the two tables; both keep what promote needs. What is to be let in at once is blocked until
-- it is: `enter` follows.
WITH asked AS (
    SELECT id, tenant, spec, job, origin, coalesce(due_at, now() + delay) AS due_at, target, payload, limit_key, enters
      FROM unnest($1::bigint[], $2::int[], $3::int[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::interval[],
                  $8::bytea[], $9::bytea[], $10::bigint[], $11::boolean[])
           AS x(id, tenant, spec, job, origin, due_at, delay, target, payload, limit_key, enters)
), near AS (
    INSERT INTO run (id, tenant, spec, job, origin, occurrence, scheduled_at, due_at, state, target, payload, limit_key,
                     tied)
    SELECT id, tenant, spec, job, origin, CASE WHEN job IS NOT NULL THEN due_at END, due_at, due_at,
           CASE WHEN enters THEN 2 ELSE 0 END, target, payload, limit_key, nullif(enters, false)
      FROM asked WHERE due_at <= now() + interval '1 minute'
)
INSERT INTO timer (id, tenant, spec, job, origin, scheduled_at, due_at, target, payload, limit_key)
SELECT id, tenant, spec, job, origin, due_at, due_at, target, payload, limit_key
  FROM asked WHERE due_at > now() + interval '1 minute'

-- :name hold_open
-- A pause or cancel in mid-transaction is waited for; one that comes later finds the new run.
SELECT id FROM job WHERE id = ANY ($1::bigint[]) AND gate = 0 ORDER BY id FOR KEY SHARE

-- :name remember
-- Why a key creates once, also across midnight, is told beside the function, in the ninth migration.
SELECT tenant, key FROM remember($1::int[], $2::text[], $3::bytea[], $4::bytea[])

-- :name recall
SELECT i.tenant, i.key, i.fingerprint, i.answer
  FROM unnest($1::int[], $2::text[]) AS x(tenant, key) JOIN idempotency i ON i.tenant = x.tenant AND i.key = x.key

-- :name answer_begun
UPDATE idempotency SET answer = $4 WHERE tenant = $1 AND key = $2 AND fingerprint = $3 AND answer = '' RETURNING true

-- :name forget_begun
DELETE FROM idempotency WHERE tenant = $1 AND key = $2 AND fingerprint = $3 AND answer = ''
