-- :name intern_spec
-- DO UPDATE with nothing to change, because DO NOTHING returns no row for a spec that is there already.
WITH home AS (
    INSERT INTO lane (queue, handler_group) VALUES ($3, $4)
    ON CONFLICT (queue, labels, handler_group) DO UPDATE SET queue = excluded.queue
    RETURNING id
), stored AS (
    INSERT INTO spec (tenant, digest, lane, priority, body) SELECT $1, $2, home.id, $5, $6 FROM home
    ON CONFLICT (tenant, digest) DO UPDATE SET digest = excluded.digest
    RETURNING id, lane
)
SELECT stored.id, stored.lane, tenant.weight FROM stored, tenant WHERE tenant.id = $1

-- :name make_lanes
-- Those that are there already are not touched: DO UPDATE would lock them in another order than `publish` does.
INSERT INTO lane (queue, handler_group)
SELECT queue, handler_group FROM unnest($1::text[]) AS queue, unnest($2::text[]) AS handler_group ORDER BY 1, 2
ON CONFLICT (queue, labels, handler_group) DO NOTHING

-- :name find_lanes
SELECT id FROM lane WHERE queue = ANY ($1::text[]) AND labels = '' AND handler_group = ANY ($2::text[]) ORDER BY id

-- :name fetch_specs
SELECT id, lane, body FROM spec WHERE id = ANY ($1::int[])
