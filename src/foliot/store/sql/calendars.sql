-- :name calendar_bodies
SELECT digest, body FROM calendar_body WHERE digest = ANY ($1::text[])

-- :name calendars_named
SELECT id, name, digest FROM calendar WHERE tenant = $1 AND name = ANY ($2::text[])

-- :name calendar_names
SELECT name FROM calendar WHERE tenant = $1 ORDER BY name LIMIT 1000

-- :name find_calendar
SELECT id, name, digest, document, source, version, followed, created_at, updated_at FROM calendar
 WHERE tenant = $1 AND name = $2

-- :name lock_calendar
SELECT id, name, digest, document, source, version, followed, created_at, updated_at FROM calendar
 WHERE tenant = $1 AND name = $2 FOR UPDATE

-- :name list_calendars
SELECT id, name, digest, document, source, version, followed, created_at, updated_at FROM calendar
 WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3

-- :name make_calendar_body
INSERT INTO calendar_body (digest, body) VALUES ($1, $2::jsonb) ON CONFLICT (digest) DO NOTHING

-- :name put_calendar
-- What says the same as before changes nothing. Other names for the same days make a version that all jobs follow already.
INSERT INTO calendar (tenant, name, digest, document, source) VALUES ($1, $2, $3, $4::jsonb, $5)
ON CONFLICT (tenant, name) DO UPDATE
   SET digest = excluded.digest, document = excluded.document, source = excluded.source,
       version = calendar.version + 1, updated_at = clock_timestamp(),
       followed = CASE WHEN calendar.digest = excluded.digest AND calendar.followed = calendar.version
                       THEN calendar.version + 1 ELSE calendar.followed END
 WHERE calendar.document <> excluded.document
RETURNING version = 1 AS is_new

-- :name delete_calendar
DELETE FROM calendar WHERE id = $1

-- :name jobs_of_calendar
SELECT id, name FROM job WHERE calendar = $1 AND gate <> 2 ORDER BY id LIMIT $2

-- :name count_jobs_of_calendars
-- How many jobs each has, and how many of them follow an older version still. Those of an older digest are only looked for
-- where there can be some.
SELECT calendar.id, count(job.id) AS jobs,
       count(job.id) FILTER (WHERE calendar.followed < calendar.version
                               AND split_part(schedule.key, '|', -2) <> calendar.digest) AS pending
  FROM calendar
  LEFT JOIN job ON job.calendar = calendar.id AND job.gate <> 2
  LEFT JOIN schedule ON schedule.id = job.schedule AND calendar.followed < calendar.version
 WHERE calendar.id = ANY ($1::int[]) GROUP BY calendar.id

-- :name hold_calendars
-- Until the commit nobody changes or deletes them: a job that is stored follows what its calendar says, or is known to the
-- one who changes it. Taken before schedules.
SELECT id, digest FROM calendar WHERE id = ANY ($1::int[]) ORDER BY id FOR SHARE

-- :name follow_calendars
UPDATE job SET calendar = x.calendar FROM unnest($1::bigint[], $2::int[]) AS x(job, calendar) WHERE job.id = x.job

-- :name calendars_behind
SELECT id, version FROM calendar WHERE followed < version ORDER BY id LIMIT 100

-- :name jobs_behind
-- The key of a schedule ends with its calendar's digest and the rule.
SELECT job.tenant, job.id, calendar.name
  FROM calendar JOIN job ON job.calendar = calendar.id JOIN schedule ON schedule.id = job.schedule
 WHERE calendar.id = $1 AND job.id > $2 AND job.gate <> 2
   AND split_part(schedule.key, '|', -2) <> calendar.digest
 ORDER BY job.id LIMIT $3

-- :name settle_calendar
-- The version was seen by an earlier statement: every job that was stored with an older one is in this one's sight.
UPDATE calendar SET followed = version
 WHERE id = $1 AND version = $2
   AND NOT EXISTS (SELECT FROM job JOIN schedule ON schedule.id = job.schedule
                    WHERE job.calendar = calendar.id AND job.gate <> 2
                      AND split_part(schedule.key, '|', -2) <> calendar.digest)
RETURNING id
