-- :name beat_scheduler
-- Each statement of a beat commits by itself: a scheduler that is stopped between two of them leaves no lock behind
-- that would keep the others from taking over.
WITH marked AS (
    UPDATE clock SET latest = clock_timestamp() WHERE latest < clock_timestamp()
)
INSERT INTO scheduler (id, name) VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp(), backend = pg_backend_pid()
RETURNING clock_timestamp() AS now

-- :name bury_schedulers
-- Who has not been seen for a lease, or is from a future that this clock will not reach within one: it was set back.
-- Also whoever hung up: a process that was killed is known at once, and one that only lost its connection is back with
-- its next beat. The row is looked at again under its lock; one that is locked is alive, its owner writes it right now.
DELETE FROM scheduler WHERE id IN (
    SELECT id FROM scheduler
     WHERE seen_at < clock_timestamp() - $1::interval OR seen_at > clock_timestamp() + $1::interval
        OR NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = scheduler.backend)
       FOR UPDATE SKIP LOCKED)
RETURNING name

-- :name live_schedulers
SELECT id FROM scheduler

-- :name hold_shards
-- Lets go of what is no longer ours, takes what is ours and free, frees what belongs to the dead. In order, so that two
-- who do it at once cannot lock each other out; whoever comes second looks at the row again.
WITH moving AS MATERIALIZED (
    SELECT shard, shard = ANY ($2::smallint[]) AS mine FROM shard
     WHERE CASE WHEN owner = $1 THEN shard <> ALL ($2::smallint[])
                WHEN owner IS NULL THEN shard = ANY ($2::smallint[])
                ELSE NOT EXISTS (SELECT FROM scheduler WHERE scheduler.id = shard.owner) END
     ORDER BY shard FOR UPDATE
)
UPDATE shard SET owner = CASE WHEN moving.mine THEN $1 END, epoch = shard.epoch + moving.mine::int
  FROM moving WHERE shard.shard = moving.shard
RETURNING shard.shard, moving.mine

-- :name held_shards
SELECT shard FROM shard WHERE owner = $1

-- :name leave_schedulers
-- The shards first: nobody looks for them by a member that is gone, and everybody by their owner.
WITH released AS (
    UPDATE shard SET owner = NULL WHERE owner = $1
)
DELETE FROM scheduler WHERE id = $1

-- :name list_schedulers
SELECT scheduler.id, scheduler.name, scheduler.started_at, scheduler.seen_at, count(shard.shard) AS shards,
       coalesce(max(shard.epoch), 0) AS epoch
  FROM scheduler LEFT JOIN shard ON shard.owner = scheduler.id
 GROUP BY scheduler.id ORDER BY scheduler.started_at, scheduler.id

-- :name clock_behind
SELECT greatest(extract(epoch FROM latest - clock_timestamp()), 0)::float8 AS seconds FROM clock
