-- :name create_tenant
INSERT INTO tenant (name) VALUES ($1) ON CONFLICT (name) DO NOTHING RETURNING id

-- :name find_tenant
SELECT id, name, weight FROM tenant WHERE name = $1

-- :name read_tenant
-- Who counts against the tenant's limit, and who is due and waits for it.
SELECT id, weight, concurrency,
       CASE WHEN concurrency IS NOT NULL THEN (SELECT count(*) FROM seat WHERE slot = line.slot AND state = 2) END
       AS going,
       CASE WHEN concurrency IS NOT NULL
            THEN (SELECT count(*) FROM seat WHERE slot = line.slot AND state = 1) END
       AS waiting
  FROM tenant CROSS JOIN LATERAL (SELECT slot_number(tenant.id, 3, 0, NULL) AS slot) AS line
 WHERE name = $1

-- :name change_limit
-- NO KEY, as in `change_weight`.
UPDATE tenant SET concurrency = $2 WHERE name = $1 RETURNING id

-- :name insert_key
INSERT INTO api_key (id, tenant, digest, label, serves) VALUES ($1, $2, $3, $4, $5)

-- :name let_serve
UPDATE api_key SET serves = $2 WHERE id = $1

-- :name find_key
SELECT api_key.digest, tenant.id AS tenant, tenant.name, api_key.id AS key, coalesce(api_key.serves, '{}') AS serves
  FROM api_key JOIN tenant ON tenant.id = api_key.tenant
 WHERE api_key.id = $1 AND api_key.revoked_at IS NULL
