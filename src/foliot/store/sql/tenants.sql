-- :name create_tenant
INSERT INTO tenant (name) VALUES ($1) ON CONFLICT (name) DO NOTHING RETURNING id

-- :name find_tenant
SELECT id, name, weight FROM tenant WHERE name = $1

-- :name read_tenants
-- By name: that of one name, that of one number, or all after a name. With who counts against the tenant's limit, and
-- who is due and waits for it.
SELECT name, id, weight, concurrency, version,
       CASE WHEN concurrency IS NOT NULL THEN (SELECT count(*) FROM seat WHERE slot = line.slot AND state = 2) END
       AS going,
       CASE WHEN concurrency IS NOT NULL
            THEN (SELECT count(*) FROM seat WHERE slot = line.slot AND state = 1) END
       AS waiting,
       rate, burst, backlog, most_jobs, most_schedules, most_keys
  FROM tenant CROSS JOIN LATERAL (SELECT slot_number(tenant.id, 3, 0, NULL) AS slot) AS line
 WHERE ($1::text IS NULL OR name = $1) AND ($2::int IS NULL OR id = $2) AND name > $3
 ORDER BY name LIMIT $4

-- :name change_limit
-- NO KEY, as in `change_weight`.
UPDATE tenant SET concurrency = $2 WHERE name = $1
