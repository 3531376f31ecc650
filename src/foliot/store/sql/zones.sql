-- :name latest_zone_data
-- Editions of a year are called a to z, then za, zb and so on: the order of the bytes.
SELECT version, since, moved FROM zone_data ORDER BY version COLLATE "C" DESC LIMIT 1

-- :name record_zone_data
-- Of two who went through the schedules at once, each has moved some.
INSERT INTO zone_data (version, moved) VALUES ($1, $2)
ON CONFLICT (version) DO UPDATE SET moved = zone_data.moved + excluded.moved

-- :name wall_clock_schedules
-- Those that are awake and may be read by some wall clock, their own or their calendar's. What is due is about to be fired
-- as it stands.
SELECT id, key, cursor, next_at FROM schedule
 WHERE id > $1 AND next_at > statement_timestamp() AND (key NOT LIKE 'every|%' OR key LIKE '%|calendar|%')
 ORDER BY id LIMIT $2

-- :name put_schedules_elsewhere
-- Compare and set, under the lock that firing and edits take: who has fired or woken it since knows better. Not after a
-- newer edition has been recorded.
UPDATE schedule SET next_at = x.next_at
  FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[]) AS x(id, cursor, expected, next_at)
 WHERE schedule.id = x.id AND schedule.cursor = x.cursor AND schedule.next_at = x.expected
   AND schedule.next_at > clock_timestamp()
   AND NOT EXISTS (SELECT FROM zone_data WHERE version COLLATE "C" > $5)
RETURNING schedule.id
