-- :name create_tenant
INSERT INTO tenant (name) VALUES ($1) ON CONFLICT (name) DO NOTHING RETURNING id

-- :name find_tenant
SELECT id, name, weight FROM tenant WHERE name = $1

-- :name insert_key
INSERT INTO api_key (id, tenant, digest, label, serves) VALUES ($1, $2, $3, $4, $5)

-- :name let_serve
UPDATE api_key SET serves = $2 WHERE id = $1

-- :name find_key
SELECT api_key.digest, tenant.id AS tenant, tenant.name, api_key.id AS key, coalesce(api_key.serves, '{}') AS serves
  FROM api_key JOIN tenant ON tenant.id = api_key.tenant
 WHERE api_key.id = $1 AND api_key.revoked_at IS NULL
