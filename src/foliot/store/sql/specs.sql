-- :name find_specs
SELECT id, lane, digest FROM spec WHERE tenant = $1 AND digest = ANY ($2::bytea[])

-- :name make_specs
-- Their lanes were made before. Sorted, so that two batches with the same specs wait for each other.
INSERT INTO spec (tenant, digest, lane, priority, body, at_most_once, concurrency)
SELECT $1, x.digest, lane.id, x.priority, x.body, x.at_most_once, x.concurrency
  FROM unnest($2::bytea[], $3::text[], $4::text[], $5::smallint[], $6::bytea[], $7::boolean[], $8::int[], $9::text[])
       AS x(digest, queue, handler_group, priority, body, at_most_once, concurrency, labels)
  JOIN lane ON lane.queue = x.queue AND lane.labels = x.labels AND lane.handler_group = x.handler_group
 ORDER BY x.digest
ON CONFLICT (tenant, digest) DO NOTHING

-- :name make_lanes
-- Those that are there already are not touched: DO UPDATE would lock them in another order than `publish` does.
-- Of each that is new whether workers may have to learn of it: whoever carries more has a lane that requires more.
INSERT INTO lane (queue, handler_group, labels)
SELECT DISTINCT queue, handler_group, labels FROM unnest($1::text[], $2::text[], $3::text[]) AS x(queue, handler_group, labels)
 ORDER BY 1, 2, 3
ON CONFLICT (queue, labels, handler_group) DO NOTHING
RETURNING labels <> '' AND EXISTS (
              SELECT FROM lane other
               WHERE other.queue = lane.queue AND other.handler_group = lane.handler_group AND other.labels <> lane.labels
                 AND string_to_array(lane.labels, ',') <@ string_to_array(other.labels, ',')) AS is_news

-- :name find_lanes
SELECT id, queue FROM lane
 WHERE queue = ANY ($1::text[]) AND labels = ANY ($3::text[]) AND handler_group = ANY ($2::text[]) ORDER BY id

-- :name fetch_specs
-- With the tenant's name: by it operators say who may run what. And with the key for calls, of those that are to be signed.
SELECT spec.id, spec.lane, spec.body, tenant.name AS tenant,
       CASE WHEN lane.handler_group = 'http' THEN derived_key('calls', spec.tenant) ELSE '' END AS signing
  FROM spec JOIN tenant ON tenant.id = spec.tenant JOIN lane ON lane.id = spec.lane WHERE spec.id = ANY ($1::int[])
