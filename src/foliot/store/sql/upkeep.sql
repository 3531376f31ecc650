-- :name make_leaves
SELECT make_history_leaves('1 day', '4 days')

-- :name turn_key_leaf
SELECT turn_key_leaf()

-- :name drop_key_leaves
SELECT drop_key_leaves($1::interval)

-- :name remove_dead_workers
-- Their claims were reaped long ago; a claim of an unknown worker would be reaped all the same.
DELETE FROM worker WHERE state = 2 AND seen_at < clock_timestamp() - interval '1 day'

-- :name retire_ended_subscriptions
-- Once the cursor has passed their end and no firing is open, nothing of theirs will be fired again. The bound keeps to
-- the index of those that end at all.
WITH past AS (
    DELETE FROM subscription s USING schedule c
     WHERE c.id = s.schedule AND s.until < c.cursor AND s.until < 'infinity'
       AND NOT EXISTS (SELECT FROM firing f WHERE f.schedule = s.schedule AND f.closed_at IS NULL)
    RETURNING s.*
)
INSERT INTO past_subscription (schedule, job, after, until, tenant, closed, catch_up, catch_up_window)
SELECT schedule, job, after, until, tenant, closed, catch_up, catch_up_window FROM past

-- :name remove_old_firings
-- The statement's clock bounds the index, here and below, as in `due_schedules`.
DELETE FROM firing WHERE closed_at < statement_timestamp() - interval '30 days'

-- :name remove_past_subscriptions
DELETE FROM past_subscription WHERE until < statement_timestamp() - interval '30 days'

-- :name remove_by_hand
DELETE FROM by_hand WHERE at < statement_timestamp() - interval '31 days'

-- :name remove_late_results
DELETE FROM late_result WHERE recorded_at < statement_timestamp() - interval '30 days'

-- :name gauges
-- A shard whose owner was not seen for a lease is held by nobody, even if nobody is left to say so. What came up late is
-- made at a pace, the oldest first: so it is among the first thousand that something stuck is looked for. Each is counted
-- up to a bound, and along an index.
WITH living AS (
    SELECT id FROM scheduler WHERE seen_at BETWEEN clock_timestamp() - $1::interval AND clock_timestamp() + $1
)
SELECT (SELECT count(*) FROM schedule WHERE next_at < statement_timestamp() - interval '5 seconds') AS overdue_schedules,
       (SELECT count(*) FROM (SELECT FROM firing WHERE closed_at IS NULL AND late_through IS NULL
                                 AND opened_at < statement_timestamp() - interval '30 seconds' LIMIT 10000) AS stuck)
       + (SELECT count(*) FROM (SELECT opened_at FROM firing WHERE closed_at IS NULL AND late_through IS NOT NULL
                                 ORDER BY at, schedule LIMIT 1000) AS oldest
           WHERE opened_at < statement_timestamp() - interval '1 hour') AS overdue_firings,
       (SELECT count(*) FROM (SELECT FROM timer WHERE due_at < statement_timestamp() - interval '5 seconds' LIMIT 10000)
                             AS late) AS overdue_timers,
       (SELECT count(*) FROM living) AS schedulers,
       (SELECT count(*) FROM shard WHERE NOT EXISTS (SELECT FROM living WHERE living.id = shard.owner)) AS unheld_shards,
       (SELECT greatest(extract(epoch FROM latest - clock_timestamp()), 0)::float8 FROM clock) AS clock_behind

-- :name ready_per_queue
-- Counted up to a bound per lane: a backlog of millions must not make its own measurement slow.
SELECT lane.queue, sum(counted.runs)::bigint AS runs
  FROM lane CROSS JOIN LATERAL (
        SELECT count(*) AS runs FROM (SELECT FROM ready WHERE ready.lane = lane.id LIMIT 100000) AS head) AS counted
 GROUP BY lane.queue
