-- :name note_audit
INSERT INTO audit (tenant, actor, key, ip, request, action, subject, outcome, before, after)
SELECT * FROM unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                     $9::text[], $10::text[])

-- :name list_audit
SELECT id, tenant, at, actor, key, ip, request, action, subject, outcome, before, after, position, hash
  FROM audit
 WHERE tenant = $1 AND id < $2 AND at >= $4 AND at < $5
   AND ($6::text IS NULL OR action = $6) AND ($7::text IS NULL OR actor = $7) AND ($8::text IS NULL OR key = $8)
   AND ($9::text IS NULL OR ip = $9) AND ($10::text IS NULL OR request = $10) AND ($11::text IS NULL OR outcome = $11)
 ORDER BY id DESC
 LIMIT $3

-- :name list_audit_of_subject
SELECT id, tenant, at, actor, key, ip, request, action, subject, outcome, before, after, position, hash
  FROM audit
 WHERE tenant = $1 AND subject = $12 AND id < $2 AND at >= $4 AND at < $5
   AND ($6::text IS NULL OR action = $6) AND ($7::text IS NULL OR actor = $7) AND ($8::text IS NULL OR key = $8)
   AND ($9::text IS NULL OR ip = $9) AND ($10::text IS NULL OR request = $10) AND ($11::text IS NULL OR outcome = $11)
 ORDER BY id DESC
 LIMIT $3

-- :name tenants_to_seal
-- From one to the next by the index, instead of over all that waits: a tenant may have left thousands.
WITH RECURSIVE found AS (
    (SELECT tenant FROM audit WHERE position IS NULL ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT tenant FROM audit WHERE position IS NULL AND tenant > found.tenant ORDER BY tenant LIMIT 1)
      FROM found WHERE found.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL LIMIT $1

-- :name begin_chain
INSERT INTO audit_chain (tenant) VALUES ($1) ON CONFLICT DO NOTHING

-- :name hold_chain
-- Whoever seals at the same moment waits here, and goes on from where the first one ended.
SELECT position, hash FROM audit_chain WHERE tenant = $1 FOR UPDATE

-- :name unsealed
SELECT id, tenant, at, actor, key, ip, request, action, subject, outcome, before, after
  FROM audit WHERE tenant = $1 AND position IS NULL ORDER BY id LIMIT $2

-- :name seal_entries
UPDATE audit SET position = link.position, hash = link.hash
  FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS link (id, position, hash)
 WHERE audit.id = link.id

-- :name seal_chain
UPDATE audit_chain SET position = $2, hash = $3 WHERE tenant = $1

-- :name unsealed_since
SELECT count(*) AS count, extract(epoch FROM clock_timestamp() - min(at))::float8 AS oldest
  FROM (SELECT at FROM audit WHERE position IS NULL LIMIT 10000) AS waiting

-- :name chains
SELECT tenant, position, hash, marked FROM audit_chain WHERE $1::integer IS NULL OR tenant = $1 ORDER BY tenant

-- :name chain_from
SELECT id, tenant, at, actor, key, ip, request, action, subject, outcome, before, after, position, hash
  FROM audit WHERE tenant = $1 AND position > $2 ORDER BY position LIMIT $3

-- :name hashes_at
SELECT audit.tenant, audit.position, audit.hash
  FROM unnest($1::integer[], $2::bigint[]) AS place (tenant, position)
  JOIN audit ON audit.tenant = place.tenant AND audit.position = place.position

-- :name last_signed
SELECT number, at, body, clock_timestamp() AS now FROM audit_checkpoint ORDER BY number DESC LIMIT 1

-- :name insert_checkpoint
INSERT INTO audit_checkpoint (number, body) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- :name mark_chains
UPDATE audit_chain SET marked = head.position
  FROM unnest($1::integer[], $2::bigint[]) AS head (tenant, position)
 WHERE audit_chain.tenant = head.tenant AND audit_chain.marked < head.position

-- :name audit_clock
SELECT clock_timestamp()
