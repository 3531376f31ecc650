-- :name outbox
SELECT id, tenant, body FROM outbox WHERE refused IS NULL ORDER BY id LIMIT $1

-- :name outbox_payloads
SELECT id, payload FROM outbox WHERE id = ANY ($1::bigint[])

-- :name send_out
-- As `plan` would have written them. Two who come at once take each row once: the second finds it gone.
WITH gone AS (
    DELETE FROM outbox USING unnest($1::bigint[], $2::int[], $3::bigint[]) AS x(id, spec, limit_key)
     WHERE outbox.id = x.id
    RETURNING outbox.*, x.spec, x.limit_key
), near AS (
    INSERT INTO run (id, tenant, spec, scheduled_at, due_at, state, target, payload, limit_key)
    SELECT id, tenant, spec, due_at, due_at, 0, target, payload, limit_key
      FROM gone WHERE due_at <= now() + interval '1 minute'
), far AS (
    INSERT INTO timer (id, tenant, spec, scheduled_at, due_at, target, payload, limit_key)
    SELECT id, tenant, spec, due_at, due_at, target, payload, limit_key
      FROM gone WHERE due_at > now() + interval '1 minute'
)
SELECT count(*) FROM gone

-- :name refuse_outbox
UPDATE outbox SET refused = x.reason FROM unnest($1::bigint[], $2::text[]) AS x(id, reason) WHERE outbox.id = x.id
