-- :name free_places
-- A key that has expired leaves its place to the next of its name.
UPDATE api_key SET place = NULL
 WHERE tenant = $1 AND label = $2 AND revoked_at IS NULL AND place IS NOT NULL AND expires_at <= clock_timestamp()

-- :name insert_key
-- Nothing if both places of the name are taken, or the free one was taken by a rival at this moment: asked again, the
-- statement sees which of the two it was.
WITH made AS (
    INSERT INTO api_key (id, tenant, digest, label, role, scopes, serves, expires_at, rate, burst, place)
    SELECT $1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8::interval, $9::float8, $10::int, free.place
      FROM (SELECT place FROM (VALUES (1), (2)) AS both_places(place)
             WHERE NOT EXISTS (SELECT FROM api_key AS other WHERE other.tenant = $2 AND other.label = $4
                                  AND other.place = both_places.place AND other.revoked_at IS NULL)
             ORDER BY place LIMIT 1) AS free
    ON CONFLICT DO NOTHING
    RETURNING *
)
SELECT made.id, tenant.id AS tenant, tenant.name AS tenant_name, made.label, made.role, made.scopes,
       coalesce(made.serves, '{}') AS serves, made.created_at, made.expires_at, made.last_used_at, made.revoked_at,
       clock_timestamp() AS now, made.rate, made.burst
  FROM made JOIN tenant ON tenant.id = made.tenant

-- :name list_keys
-- Newest first: of one tenant or of all, of one name or of any; `status` is active, expired or revoked.
SELECT k.id, tenant.id AS tenant, tenant.name AS tenant_name, k.label, k.role, k.scopes,
       coalesce(k.serves, '{}') AS serves, k.created_at, k.expires_at, k.last_used_at, k.revoked_at,
       clock_timestamp() AS now, k.rate, k.burst
  FROM api_key AS k JOIN tenant ON tenant.id = k.tenant
 WHERE ($1::int IS NULL OR k.tenant = $1) AND ($2::text IS NULL OR k.label = $2)
   AND ($3::text IS NULL OR $3 = CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked'
                                      WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END)
   AND ($4::timestamptz IS NULL OR (k.created_at, k.id) < ($4, $5))
 ORDER BY k.created_at DESC, k.id DESC LIMIT $6

-- :name read_key
SELECT k.id, tenant.id AS tenant, tenant.name AS tenant_name, k.label, k.role, k.scopes,
       coalesce(k.serves, '{}') AS serves, k.created_at, k.expires_at, k.last_used_at, k.revoked_at,
       clock_timestamp() AS now, k.rate, k.burst
  FROM api_key AS k JOIN tenant ON tenant.id = k.tenant
 WHERE k.id = $1

-- :name revoke_key
UPDATE api_key SET revoked_at = clock_timestamp() WHERE tenant = $1 AND id = $2 AND revoked_at IS NULL RETURNING id

-- :name revoke_named
UPDATE api_key SET revoked_at = clock_timestamp() WHERE tenant = $1 AND label = $2 AND revoked_at IS NULL RETURNING id

-- :name expire_key
-- Within $3, or when it would have expired anyway.
UPDATE api_key SET expires_at = least(expires_at, clock_timestamp() + $3::interval)
 WHERE tenant = $1 AND id = $2 AND revoked_at IS NULL

-- :name entrust_key
-- Nothing if it may that already.
UPDATE api_key SET role = $3, scopes = NULL, serves = $4
 WHERE tenant = $1 AND id = $2 AND (role <> $3 OR scopes IS NOT NULL OR serves IS DISTINCT FROM $4)
RETURNING id

-- :name note_used
-- At most once a minute for each key, whoever notes it; in order of their ids, so that two who do cannot deadlock.
WITH used AS (
    SELECT api_key.id, clock_timestamp() - make_interval(secs => x.ago) AS at
      FROM unnest($1::text[], $2::float8[]) AS x(id, ago) JOIN api_key ON api_key.id = x.id
     WHERE api_key.last_used_at IS NULL OR api_key.last_used_at < clock_timestamp() - interval '55 seconds'
     ORDER BY api_key.id
       FOR NO KEY UPDATE OF api_key
)
UPDATE api_key SET last_used_at = greatest(last_used_at, used.at) FROM used WHERE api_key.id = used.id

-- :name find_key
SELECT api_key.digest, tenant.id AS tenant, tenant.name, api_key.id AS key, coalesce(api_key.serves, '{}') AS serves,
       api_key.role, api_key.scopes, extract(epoch FROM api_key.expires_at - clock_timestamp())::float8 AS remaining,
       tenant.rate, tenant.burst, api_key.rate, api_key.burst, tenant.backlog
  FROM api_key JOIN tenant ON tenant.id = api_key.tenant
 WHERE api_key.id = $1 AND api_key.revoked_at IS NULL
   AND (api_key.expires_at IS NULL OR api_key.expires_at > clock_timestamp())
